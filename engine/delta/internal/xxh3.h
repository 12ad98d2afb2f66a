// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace volferry::delta::internal {

struct Hash128 {
  std::uint64_t low;
  std::uint64_t high;
};

// XXH3-128 of `size` bytes under a secret of at least 136 bytes. All kernels give equal results.
using Xxh3Function = Hash128 (*)(const std::uint8_t* data, std::size_t size,
                                 const std::uint8_t* secret, std::size_t secret_size);

// One kernel, compiled for one instruction set.
struct Xxh3Kernel {
  const char* name;
  Xxh3Function hash;
  bool usable;  // on this CPU; calling an unusable one is SIGILL
};

// The kernels of this build, the fastest last; the first is always usable.
struct Xxh3Kernels {
  const Xxh3Kernel* begin() const { return list; }
  const Xxh3Kernel* end() const { return list + count; }
  Xxh3Kernel list[3];
  std::size_t count;
};
Xxh3Kernels xxh3_kernels();

// The fastest usable kernel.
Xxh3Function best_xxh3();

}  // namespace volferry::delta::internal
