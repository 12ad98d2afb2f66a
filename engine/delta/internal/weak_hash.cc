// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/weak_hash.h"

namespace volferry::delta::internal {

WeakHash::WeakHash(const StrongHash& hash, std::uint32_t block_bytes, bool vectors)
    : block_bytes_(block_bytes),
      kernel_(vectors ? best_roll_kernel() : nullptr),
      state_kernel_(vectors ? best_state_kernel() : nullptr) {
  const std::uint64_t random = hash.hash64(base::as_bytes("volferry rolling weak hash"));
  mixer_.factor = static_cast<std::uint32_t>(random) | 1;
  for (std::uint32_t i = 0; i < words_.size(); ++i) {
    words_[i] = mixer_.mix(i);
    weighed_[i] = words_[i] * block_bytes;
  }
}

WeakHash::State WeakHash::state(base::Bytes data) const {
  const std::size_t group = state_kernel_ != nullptr ? kStateGroup : 4;
  const base::Bytes groups = data.first(data.size() / group * group);
  State total = state_kernel_ != nullptr ? state_kernel_(groups.data(), groups.size(), mixer_)
                                         : state_of_quarters(groups);
  for (const std::uint8_t byte : data.subspan(groups.size())) {
    total.sum += words_[byte];
    total.weak += total.sum;
  }
  return total;
}

// Four lanes over four quarters, since one chain of additions leaves the CPU waiting. A quarter's
// bytes weigh as much more as bytes follow it.
WeakHash::State WeakHash::state_of_quarters(base::Bytes data) const {
  const std::size_t quarter = data.size() / 4;
  std::array<RollState, 4> lanes{};
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
  return total;
}

std::size_t WeakHash::roll_groups(base::Bytes content, std::size_t at, std::size_t end,
                                  const WeakFilter& filter, State& state) const {
  if (kernel_ == nullptr) return at;
  const std::uint8_t* const out = content.data() + at;
  const RollInput input{out, out + block_bytes_, mixer_, block_bytes_, filter};
  return at + kernel_(input, state, end - at);
}

std::size_t WeakHash::roll_until(base::Bytes content, std::size_t at, std::size_t end,
                                 const WeakFilter& filter, State& state) const {
  if (at == end || filter.may_contain(state.weak)) return at;
  at = roll_groups(content, at, end, filter, state);
  // Here a state that passes is less than a group away, or the end is; without a kernel this does
  // it all.
  const std::uint8_t* const out = content.data();
  const std::uint8_t* const in = out + block_bytes_;
  State rolling = state;
#pragma GCC unroll 4
  while (at < end) {
    rolling = roll(rolling, out[at], in[at]);
    ++at;
    if (filter.may_contain(rolling.weak)) break;
  }
  state = rolling;
  return at;
}

void WeakHash::roll_to(base::Bytes content, std::size_t at, std::size_t end, State& state) const {
  at = roll_groups(content, at, end, {}, state);
  for (; at < end; ++at) state = roll(state, content[at], content[at + block_bytes_]);
}

}  // namespace volferry::delta::internal
