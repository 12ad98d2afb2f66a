// SPDX-License-Identifier: Apache-2.0
#include "fuzz/codec_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace volferry;  // NOLINT(google-build-using-namespace): a fuzz target's only function
  return fuzz::check_one_of<wire::ItemReport, wire::ItemChange, wire::Progress>(data, size);
}
