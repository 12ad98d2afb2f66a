// SPDX-License-Identifier: Apache-2.0
// The weak hash that rolls. rsync's pair of sums, but over a random 32-bit word for each byte value
// instead of the value itself: sum = Σ T[x_i] and weak = Σ (n - i) T[x_i] mod 2^32. One step is a
// chain of two additions, so it rolls faster than a polynomial (a multiplication a byte), and the
// random words spread the result over all 32 bits, which bare byte sums of small blocks do not. T
// comes from the session's secret, so collisions cannot be prepared by table; those that hold for
// every T (bytes moved so that each value keeps its sum of positions) remain, and the matcher
// bounds their cost. T[0] is 0: a window of zeros has the state {0, 0}.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/delta/strong_hash.h"

namespace volferry::delta::internal {

class WeakHash {
 public:
  struct State {
    std::uint32_t sum = 0;
    std::uint32_t weak = 0;
    bool operator==(const State&) const = default;
  };

  // Draws the words from the secret of `hash`; windows to roll are `block_bytes` long.
  WeakHash(const StrongHash& hash, std::uint32_t block_bytes);

  // The state of the window `data`.
  State state(base::Bytes data) const;

  // Moves a window of block_bytes by one.
  State roll(State state, std::uint8_t out, std::uint8_t in) const {
    state.sum += words_[in] - words_[out];
    state.weak += state.sum - weighed_[out];
    return state;
  }

 private:
  std::array<std::uint32_t, 256> words_;
  std::array<std::uint32_t, 256> weighed_;  // words_ times block_bytes
};

}  // namespace volferry::delta::internal
