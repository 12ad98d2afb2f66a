// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/xxh3.h"

namespace volferry::delta::internal {

#define VF_DECLARE_KERNEL(name)                                                        \
  Hash128 name(const std::uint8_t* data, std::size_t size, const std::uint8_t* secret, \
               std::size_t secret_size)
VF_DECLARE_KERNEL(xxh3_baseline);
VF_DECLARE_KERNEL(xxh3_avx2);
VF_DECLARE_KERNEL(xxh3_avx512);
#undef VF_DECLARE_KERNEL

Xxh3Kernels xxh3_kernels() {
#if defined(__x86_64__)
  return {{{"sse2", xxh3_baseline, true},
           {"avx2", xxh3_avx2, __builtin_cpu_supports("avx2") != 0},
           {"avx512", xxh3_avx512, __builtin_cpu_supports("avx512f") != 0}},
          3};
#else
  return {{{"baseline", xxh3_baseline, true}}, 1};
#endif
}

Xxh3Function best_xxh3() {
  const Xxh3Kernels kernels = xxh3_kernels();
  Xxh3Function best = nullptr;
  for (const Xxh3Kernel& kernel : kernels) {
    if (kernel.usable) best = kernel.hash;
  }
  return best;
}

}  // namespace volferry::delta::internal
