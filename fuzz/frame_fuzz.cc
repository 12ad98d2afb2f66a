// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "engine/base/check.h"
#include "engine/transport/wire/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace volferry;  // NOLINT(google-build-using-namespace): a fuzz target's only function
  const auto header = wire::decode_header({data, size}, wire::kMaxHead);
  if (!header) return 0;
  VF_CHECK(header->head_length <= wire::kMaxHead, "head past its limit");
  VF_CHECK(header->body_length <= wire::kMaxBody, "body past its limit");
  std::array<std::uint8_t, wire::kFrameHeaderBytes> again{};
  wire::encode_header(*header, again);
  VF_CHECK(std::equal(again.begin(), again.end(), data), "header does not come back");
  return 0;
}
