// SPDX-License-Identifier: Apache-2.0
// The inner loops of the rolling search: hash a window, and move it byte by byte until its weak
// hash passes the filter. Plain data and no C++ library, since kernels for wider vectors include
// this (see xxh3_kernel.inc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace volferry::delta::internal {

// What rolls: the sums over the window (see weak_hash.h).
struct RollState {
  std::uint32_t sum = 0;
  std::uint32_t weak = 0;
  bool operator==(const RollState&) const = default;
};

// How a byte becomes the random word that is summed. A second multiplication, usual in such mixers,
// would only multiply the sums.
struct WordMixer {
  std::uint32_t factor;  // odd, so that different bytes have different words
  std::uint32_t mix(std::uint32_t byte) const {
    const std::uint32_t word = byte * factor;
    return word ^ (word >> 15);
  }
};

// A Bloom filter of two bits in one word: the low bits of the hash choose the word, its top five
// and the five below them the bits.
struct WeakFilter {
  const std::uint32_t* words = nullptr;
  std::uint32_t mask = 0;  // one less than the number of words, a power of two

  static std::uint32_t first_bit(std::uint32_t weak) { return weak >> 27; }
  static std::uint32_t second_bit(std::uint32_t weak) { return weak >> 22 & 31; }
  bool may_contain(std::uint32_t weak) const {
    const std::uint32_t word = words[weak & mask];
    if ((word >> first_bit(weak) & 1) == 0) [[likely]]
      return false;
    return (word >> second_bit(weak) & 1) != 0;
  }
};

struct RollInput {
  const std::uint8_t* out;  // bytes that leave the window, in order
  const std::uint8_t* in;   // bytes that enter it
  WordMixer mixer;
  std::uint32_t block_bytes;
  WeakFilter filter;
};

// Rolls by a multiple of the kernel's width, at most `count` steps, and stops before the first
// group of steps that reaches a state which the filter lets pass, or before a last incomplete
// group. Returns the steps taken. A filter without words lets nothing pass.
using RollKernel = std::size_t (*)(const RollInput& input, RollState& state, std::size_t count);

// The state of a window: of its first bytes, a multiple of kStateGroup. The caller adds the rest.
using StateKernel = RollState (*)(const std::uint8_t* bytes, std::size_t count, WordMixer mixer);
inline constexpr std::size_t kStateGroup = 8;

// Null where the CPU has no vectors that would help.
RollKernel best_roll_kernel();
StateKernel best_state_kernel();

}  // namespace volferry::delta::internal
