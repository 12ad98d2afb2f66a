// SPDX-License-Identifier: Apache-2.0
// The one error type of the engine, and `Result`. Policy: everything that can fail returns a
// `Result`; exceptions never cross an engine header; whoever returns an error does not log it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace volferry {

// See error_codes.def for each code's meaning, exit code and retryability.
enum class Code : std::uint8_t {
#define VF_ERROR(name, exit_code, retryable, reason, meaning) name,
#include "engine/base/error_codes.def"
#undef VF_ERROR
};

struct Error {
  Code code = Code::kInternal;
  int os_errno = 0;     // 0 where no system call is involved
  std::string context;  // operation, object and offset: "pwrite data.img @1048576+65536"

  // One line for a person: context, and the system's reason where there is one.
  std::string message() const;
};

int exit_code(Code code);
bool retryable(Code code);
std::string_view reason(Code code);

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// An error value ready to return from a function with any `Result` type.
inline std::unexpected<Error> fail_with(Code code, std::string context, int os_errno = 0) {
  return std::unexpected(Error{code, os_errno, std::move(context)});
}
// The error of a failed system call: code kSystem with the current errno, or the given one.
std::unexpected<Error> fail_sys(std::string context);
std::unexpected<Error> fail_sys(std::string context, int os_errno);

}  // namespace volferry

#define VF_CONCAT_INNER(a, b) a##b
#define VF_CONCAT(a, b) VF_CONCAT_INNER(a, b)

// Returns the error of a failed `Status` or `Result` expression from the enclosing function.
#define VF_TRY(expression)                                  \
  do {                                                      \
    if (auto vf_status = (expression); !vf_status)          \
      return std::unexpected(std::move(vf_status).error()); \
  } while (false)

// `VF_ASSIGN(auto fd, open_it());`: the value of a `Result`, or return its error.
#define VF_ASSIGN(target, expression)                                           \
  auto VF_CONCAT(vf_result_, __LINE__) = (expression);                          \
  if (!VF_CONCAT(vf_result_, __LINE__))                                         \
    return std::unexpected(std::move(VF_CONCAT(vf_result_, __LINE__)).error()); \
  target = *std::move(VF_CONCAT(vf_result_, __LINE__))
