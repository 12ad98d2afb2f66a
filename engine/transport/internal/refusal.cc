// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/refusal.h"

namespace volferry::transport {

namespace {

// The list is in order of exit codes; of codes that share one, the first is the public one.
Code code_of_exit(std::uint32_t exit) {
#define VF_ERROR(name, code, retryable, reason, meaning) \
  if (exit == (code)) return Code::name;
#include "engine/base/error_codes.def"
#undef VF_ERROR
  return Code::kProtocol;
}

}  // namespace

wire::Frame make_refusal(const Error& error) {
  return wire::make_frame(
      wire::Refuse{static_cast<std::uint32_t>(exit_code(error.code)), error.message()});
}

Error refusal_error(const wire::Refuse& refuse) {
  return {code_of_exit(refuse.code), 0, "peer: " + refuse.text};
}

}  // namespace volferry::transport
