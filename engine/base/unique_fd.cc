// SPDX-License-Identifier: Apache-2.0
#include "engine/base/unique_fd.h"

#include <unistd.h>

namespace volferry::base {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace volferry::base
