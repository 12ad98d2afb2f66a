// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "engine/base/check.h"
#include "engine/transport/wire/compression.h"
#include "engine/transport/wire/limits.h"

// The first two bytes are the announced size, the rest is taken for a zstd frame; then the input
// itself makes the round trip.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace volferry;  // NOLINT(google-build-using-namespace): a fuzz target's only function
  if (size < 2 || size > wire::kMaxBody) return 0;
  wire::Compressor compressor;
  std::vector<std::uint8_t> out(data[0] + 256u * data[1]);
  (void)compressor.decompress({data + 2, size - 2}, out);
  const base::Buffer packed = compressor.compress({data, size}, 1);
  if (packed.empty()) return 0;
  std::vector<std::uint8_t> back(size);
  VF_CHECK(compressor.decompress(packed.bytes(), back).has_value(), "own frame refused");
  VF_CHECK(std::equal(back.begin(), back.end(), data), "round trip");
  return 0;
}
