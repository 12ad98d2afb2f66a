// SPDX-License-Identifier: Apache-2.0
#include "engine/base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "engine/base/check.h"

namespace volferry::base {

void fill_random(MutBytes out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      VF_CHECK(errno == EINTR, "getrandom failed");
      continue;
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace volferry::base
