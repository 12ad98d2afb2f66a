// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/aligned.h"

#include <algorithm>

#include "engine/delta/internal/instruction_list.h"
#include "engine/delta/zero.h"

namespace volferry::delta {

namespace {

// Bytes of block `index` in a range of `size` bytes; 0 past its end.
std::uint64_t block_length(std::size_t index, std::uint64_t size) {
  const std::uint64_t begin = index * kBlockBytes;
  return begin >= size ? 0 : std::min(kBlockBytes, size - begin);
}

}  // namespace

std::vector<Instruction> compare_blocks(base::Bytes source,
                                        const std::vector<std::uint32_t>& source_blocks,
                                        const std::vector<std::uint32_t>& basis_blocks,
                                        std::uint64_t basis_bytes) {
  internal::InstructionList list;
  // The basis list comes from the peer: it may be shorter than `basis_bytes` says.
  const std::size_t known = std::min(source_blocks.size(), basis_blocks.size());
  for (std::size_t i = 0; i * kBlockBytes < source.size(); ++i) {
    const std::uint64_t length = block_length(i, source.size());
    if (i < known && source_blocks[i] == basis_blocks[i] &&
        length == block_length(i, basis_bytes)) {
      list.add(InstructionKind::kSame, length);
    } else {
      const bool zero = is_zero(source.subspan(i * kBlockBytes, length));
      list.add(zero ? InstructionKind::kZero : InstructionKind::kLiteral, length);
    }
  }
  return list.take();
}

std::vector<Instruction> literal_or_zero(base::Bytes source) {
  return compare_blocks(source, {}, {}, 0);
}

}  // namespace volferry::delta
