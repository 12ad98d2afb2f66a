// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/weak_hash.h"

namespace volferry::delta::internal {

namespace {

// The finaliser of MurmurHash3 over a counter (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014).
std::uint64_t next_random(std::uint64_t& counter) {
  counter += 0x9e3779b97f4a7c15;
  std::uint64_t z = counter;
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccd;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53;
  return z ^ (z >> 33);
}

}  // namespace

WeakHash::WeakHash(const StrongHash& hash, std::uint32_t block_bytes) {
  std::uint64_t counter = hash.hash64(base::as_bytes("volferry rolling weak hash"));
  words_[0] = 0;
  for (std::size_t i = 1; i < words_.size(); ++i) {
    words_[i] = static_cast<std::uint32_t>(next_random(counter) >> 32);
  }
  for (std::size_t i = 0; i < words_.size(); ++i) weighed_[i] = words_[i] * block_bytes;
}

// Four lanes over four quarters, since one chain of additions leaves the CPU waiting. A quarter's
// bytes weigh as much more as bytes follow it.
WeakHash::State WeakHash::state(base::Bytes data) const {
  const std::size_t quarter = data.size() / 4;
  std::array<State, 4> lanes{};
  const std::uint8_t* bytes = data.data();
  for (std::size_t i = 0; i < quarter; ++i) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      lanes[lane].sum += words_[bytes[lane * quarter + i]];
      lanes[lane].weak += lanes[lane].sum;
    }
  }
  State total;
  for (const State& lane : lanes) {
    total.weak += static_cast<std::uint32_t>(quarter) * total.sum + lane.weak;
    total.sum += lane.sum;
  }
  for (std::size_t i = 4 * quarter; i < data.size(); ++i) {
    total.sum += words_[bytes[i]];
    total.weak += total.sum;
  }
  return total;
}

}  // namespace volferry::delta::internal
