// SPDX-License-Identifier: Apache-2.0
// VF_CHECK: for volferry's own bugs only, never for input. Prints where and what, then aborts.
#pragma once

namespace volferry::base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* message);
}  // namespace volferry::base

#define VF_CHECK(condition, message)                                           \
  do {                                                                         \
    if (!(condition)) [[unlikely]]                                             \
      ::volferry::base::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)
