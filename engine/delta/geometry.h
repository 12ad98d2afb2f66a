// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace volferry::delta {

// Content is compared in two levels on a fixed grid: 1 MiB ranges by strong digest, then the 4 KiB
// blocks of a range that differs by 32-bit hashes. A wrong block match (chance 2^-32 a block) is
// caught by the range digest.
inline constexpr std::uint64_t kRangeBytes = 1 << 20;
inline constexpr std::uint64_t kBlockBytes = 4096;
inline constexpr std::size_t kBlocksPerRange = kRangeBytes / kBlockBytes;

constexpr std::uint64_t range_count(std::uint64_t size) {
  return (size + kRangeBytes - 1) / kRangeBytes;
}
// Bytes of range `index` in a file of `size` bytes; 0 past its end.
constexpr std::uint64_t range_length(std::uint64_t index, std::uint64_t size) {
  const std::uint64_t begin = index * kRangeBytes;
  if (begin >= size) return 0;
  return size - begin < kRangeBytes ? size - begin : kRangeBytes;
}

}  // namespace volferry::delta
