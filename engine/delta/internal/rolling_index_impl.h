// SPDX-License-Identifier: Apache-2.0
// The table behind RollingIndex: a bit filter that answers "surely not" for nearly every source
// offset and stays in the L2 cache, then open addressing with linear probing over {weak, block},
// then the strong hashes by block number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/delta/internal/roll.h"
#include "engine/delta/rolling.h"

namespace volferry::delta {

struct RollingIndex::Impl {
  static constexpr std::uint32_t kNoBlock = 0xffffffff;
  // Slots looked at in one lookup. At the table's load of 3/4 fewer than one block in 500 finds no
  // room within them; it is then left out, which loses a match and nothing else.
  static constexpr std::size_t kMaxProbes = 64;
  // Blocks held that share a weak hash but not their content.
  static constexpr std::size_t kMaxEqualWeak = 8;

  struct Slot {
    std::uint32_t weak;
    std::uint32_t block = kNoBlock;
  };

  // What one lookup found: the blocks with the wanted weak hash, and the slots it cost.
  struct Candidates {
    std::uint32_t blocks[kMaxEqualWeak];
    std::size_t count = 0;
    std::size_t probes = 0;
  };

  internal::WeakFilter filter() const {
    return {filter_words.data(), static_cast<std::uint32_t>(filter_words.size() - 1)};
  }
  Candidates find(std::uint32_t weak) const;
  std::uint64_t block_offset(std::uint32_t block) const {
    return offset + std::uint64_t{block} * block_bytes;
  }

  void build(const std::vector<std::uint32_t>& weak, std::uint64_t zero_strong);
  void add_to_filter(std::uint32_t weak);
  void insert(std::uint32_t weak, std::uint32_t block);
  std::size_t first_slot(std::uint32_t weak) const {
    return (std::uint64_t{weak * kSpread} * slots.size()) >> 32;
  }

  // Odd, so no two weak hashes fall together before the multiplication that scales to the table
  // (Knuth, TAOCP 6.4).
  static constexpr std::uint32_t kSpread = 0x9e3779b1;

  std::uint64_t offset = 0;
  std::uint32_t block_bytes = 0;  // 0 where the signature made no sense; the index is then empty
  std::size_t held = 0;
  std::vector<std::uint32_t> filter_words;
  std::vector<Slot> slots;
  std::vector<std::uint64_t> strong;
  std::uint64_t zero_strong = 0;
};

}  // namespace volferry::delta
