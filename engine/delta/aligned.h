// SPDX-License-Identifier: Apache-2.0
// Comparing a source range with the block hashes of the basis range at the same offset.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/delta/geometry.h"
#include "engine/delta/instruction.h"

namespace volferry::delta {

// `source`: one range; `source_blocks`, `basis_blocks`: 32-bit hashes of the 4 KiB blocks of the
// source range and of the basis range (`basis_bytes` long; its last block may be short and then
// matches only at equal length). Zero blocks become kZero whatever the basis holds, unless the
// basis block is equal. Adjacent instructions of one kind are joined. The lengths add up to
// source.size().
std::vector<Instruction> compare_blocks(base::Bytes source,
                                        const std::vector<std::uint32_t>& source_blocks,
                                        const std::vector<std::uint32_t>& basis_blocks,
                                        std::uint64_t basis_bytes);

// Splits a range without any basis into literals and zero runs of whole 4 KiB blocks.
std::vector<Instruction> literal_or_zero(base::Bytes source);

}  // namespace volferry::delta
