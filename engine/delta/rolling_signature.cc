// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "engine/delta/internal/weak_hash.h"
#include "engine/delta/rolling.h"

namespace volferry::delta {

std::uint32_t rolling_block_bytes(std::uint64_t basis_bytes) {
  constexpr std::uint32_t kLeast = 1024;
  constexpr std::uint32_t kMost = 65536;
  // 4^k <= basis_bytes < 4^(k+1) gives 2^k or, in the upper half of that interval, 2^(k+1).
  const int bits = std::bit_width(basis_bytes);
  const int exponent = std::clamp(bits / 2, 0, 31);
  return std::clamp(std::uint32_t{1} << exponent, kLeast, kMost);
}

void append_signature(const StrongHash& hash, base::Bytes data, RollingSignature& signature) {
  const std::uint32_t block_bytes = signature.block_bytes;
  if (block_bytes < kMinRollingBlock || block_bytes > kMaxRollingBlock) return;
  const internal::WeakHash weak(hash, block_bytes);
  const std::size_t count = data.size() / block_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const base::Bytes block = data.subspan(i * block_bytes, block_bytes);
    signature.weak.push_back(weak.state(block).weak);
    signature.strong.push_back(hash.hash64(block));
  }
}

}  // namespace volferry::delta
