// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/base/error.h"
#include "engine/delta/rolling.h"
#include "engine/delta/strong_hash.h"

namespace volferry::session {

// What to sign of an open file: `length` bytes from `offset`, in blocks of `block_bytes` (a power
// of two, at most delta::kMaxRollingBlock).
struct RollingPiece {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t block_bytes = 0;
};

// The rolling signature of the piece in parts that follow each other, computed on up to `threads`
// threads. A file that ends early has fewer blocks.
Result<std::vector<delta::RollingSignature>> rolling_parts(const delta::StrongHash& hash, int fd,
                                                           const RollingPiece& piece,
                                                           unsigned threads);

}  // namespace volferry::session
