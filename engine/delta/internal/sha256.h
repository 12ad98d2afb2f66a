// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/bytes.h"

namespace volferry::delta::internal {

// SHA-256(key || domain || data). Thread-safe.
std::array<std::uint8_t, 32> keyed_sha256(base::Bytes key, std::uint8_t domain, base::Bytes data);

}  // namespace volferry::delta::internal
