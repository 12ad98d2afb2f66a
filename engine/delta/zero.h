// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/base/bytes.h"

namespace volferry::delta {

// True where every byte is zero (also for no bytes). At memory speed; stops early.
bool is_zero(base::Bytes data);

}  // namespace volferry::delta
