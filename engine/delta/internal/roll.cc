// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/roll.h"

namespace volferry::delta::internal {

#if defined(__x86_64__)
std::size_t roll_avx2(const RollInput& input, RollState& state, std::size_t count);
RollState state_avx2(const std::uint8_t* bytes, std::size_t count, WordMixer mixer);

RollKernel best_roll_kernel() { return __builtin_cpu_supports("avx2") != 0 ? roll_avx2 : nullptr; }
StateKernel best_state_kernel() {
  return __builtin_cpu_supports("avx2") != 0 ? state_avx2 : nullptr;
}
#else
RollKernel best_roll_kernel() { return nullptr; }
StateKernel best_state_kernel() { return nullptr; }
#endif

}  // namespace volferry::delta::internal
