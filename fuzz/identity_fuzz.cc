// SPDX-License-Identifier: Apache-2.0
// The movers' identity tuple: what is accepted is encoded again and means the same.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/mover/identity.h"

#include "engine/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace volferry::cli::mover;
  const auto first = decode_identity(std::vector<std::uint8_t>(data, data + size));
  if (!first || !*first) return 0;
  const auto again = decode_identity(encode_identity(**first));
  VF_CHECK(again && *again == *first, "an accepted tuple does not survive encoding");
  return 0;
}
