// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace volferry::delta {

enum class InstructionKind : std::uint8_t {
  kLiteral,  // bytes of the source
  kCopy,     // from the basis at basis_offset
  kSame,     // from the basis at the same offset
  kZero,     // zeros
};

// One step in building a range of the new file from the basis.
struct Instruction {
  InstructionKind kind = InstructionKind::kLiteral;
  std::uint32_t length = 0;
  std::uint64_t basis_offset = 0;  // kCopy only, else 0
  bool operator==(const Instruction&) const = default;
};

}  // namespace volferry::delta
