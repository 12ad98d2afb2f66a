// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/delta/instruction.h"

namespace volferry::delta::internal {

// Collects instructions and joins neighbours that one instruction can express. Lengths stay below
// 2^32 as long as one list describes one range.
class InstructionList {
 public:
  void add(InstructionKind kind, std::size_t length, std::uint64_t basis_offset = 0) {
    if (length == 0) return;
    const auto short_length = static_cast<std::uint32_t>(length);
    if (continues_last(kind, basis_offset)) {
      list_.back().length += short_length;
    } else {
      list_.push_back({kind, short_length, basis_offset});
    }
  }
  std::vector<Instruction> take() { return std::move(list_); }

 private:
  bool continues_last(InstructionKind kind, std::uint64_t basis_offset) const {
    if (list_.empty() || list_.back().kind != kind) return false;
    return kind != InstructionKind::kCopy ||
           list_.back().basis_offset + list_.back().length == basis_offset;
  }
  std::vector<Instruction> list_;
};

}  // namespace volferry::delta::internal
