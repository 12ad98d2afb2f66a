// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "engine/base/bytes.h"

namespace volferry::delta::internal {

// The number of zero bytes that `data` begins with. At memory speed.
std::size_t zero_prefix(base::Bytes data);

// A run of zero bytes, as offsets into the searched span; empty where there is none.
struct ZeroRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin == end; }
};

// The first run of at least kBlockBytes zeros at or after `from`, in its whole length. Finding run
// after run by passing the end of the last one is linear in all.
ZeroRun find_zero_run(base::Bytes data, std::size_t from);

}  // namespace volferry::delta::internal
