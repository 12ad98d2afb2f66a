// SPDX-License-Identifier: Apache-2.0
// The weak hash that rolls. rsync's pair of sums, but over a random 32-bit word for each byte value
// instead of the value itself: sum = Σ T[x_i] and weak = Σ (n - i) T[x_i] mod 2^32. One step is a
// chain of two additions, so it rolls faster than a polynomial (a multiplication a byte), and the
// random words spread the result over all 32 bits, which bare byte sums of small blocks do not. T
// (WordMixer) comes from the session's secret, so collisions cannot be prepared by table; those
// that hold for every T (bytes moved so that each value keeps its sum of positions) remain, and the
// matcher bounds their cost. T[0] is 0: a window of zeros has the state {0, 0}.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/delta/internal/roll.h"
#include "engine/delta/strong_hash.h"

namespace volferry::delta::internal {

class WeakHash {
 public:
  using State = RollState;

  // Draws the words from the secret of `hash`; windows to roll are `block_bytes` long. Without
  // `vectors` it works as on a CPU that has none.
  WeakHash(const StrongHash& hash, std::uint32_t block_bytes, bool vectors = true);

  // The state of the window `data`.
  State state(base::Bytes data) const;

  // Moves a window of block_bytes by one.
  State roll(State state, std::uint8_t out, std::uint8_t in) const {
    state.sum += words_[in] - words_[out];
    state.weak += state.sum - weighed_[out];
    return state;
  }

  // Rolls a window along `content`, from offset `at` on, until its weak hash passes `filter` or it
  // stands at `end`; at + block_bytes <= end + block_bytes <= content.size(). `state` is that of
  // `at` and becomes that of the offset returned.
  std::size_t roll_until(base::Bytes content, std::size_t at, std::size_t end,
                         const WeakFilter& filter, State& state) const;
  // The same without a filter: straight to `end`.
  void roll_to(base::Bytes content, std::size_t at, std::size_t end, State& state) const;

 private:
  State state_of_quarters(base::Bytes data) const;
  std::size_t roll_groups(base::Bytes content, std::size_t at, std::size_t end,
                          const WeakFilter& filter, State& state) const;

  std::uint32_t block_bytes_;
  RollKernel kernel_;         // may be null
  StateKernel state_kernel_;  // the same
  WordMixer mixer_;
  std::array<std::uint32_t, 256> words_;
  std::array<std::uint32_t, 256> weighed_;  // words_ times block_bytes
};

}  // namespace volferry::delta::internal
