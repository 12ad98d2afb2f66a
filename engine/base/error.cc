// SPDX-License-Identifier: Apache-2.0
#include "engine/base/error.h"

#include <cerrno>
#include <system_error>

namespace volferry {

namespace {
struct CodeRow {
  int exit_code;
  bool retryable;
  std::string_view reason;
};
constexpr CodeRow kRows[] = {
#define VF_ERROR(name, exit_code, retryable, reason, meaning) {exit_code, retryable, reason},
#include "engine/base/error_codes.def"
#undef VF_ERROR
};
}  // namespace

int exit_code(Code code) { return kRows[static_cast<std::size_t>(code)].exit_code; }
bool retryable(Code code) { return kRows[static_cast<std::size_t>(code)].retryable; }
std::string_view reason(Code code) { return kRows[static_cast<std::size_t>(code)].reason; }

std::string Error::message() const {
  if (os_errno == 0) return context;
  return context + ": " + std::generic_category().message(os_errno);
}

std::unexpected<Error> fail_sys(std::string context) {
  const int saved = errno;
  return fail_with(Code::kSystem, std::move(context), saved);
}

std::unexpected<Error> fail_sys(std::string context, int os_errno) {
  return fail_with(Code::kSystem, std::move(context), os_errno);
}

}  // namespace volferry
