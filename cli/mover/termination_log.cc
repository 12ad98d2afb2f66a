// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/termination_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace volferry::cli::mover {

Result<TerminationLog> TerminationLog::open(const std::string& path, bool create) {
  // Never waits for a reader of a pipe.
  const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (create ? O_CREAT : 0);
  base::UniqueFd fd(::open(path.c_str(), flags, 0644));
  if (!fd) return fail_sys("termination log " + path);
  return TerminationLog(path, std::move(fd));
}

Status TerminationLog::write(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  // A device or pipe has no length to reset.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL)
    return fail_sys("termination log " + path_);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_sys("termination log " + path_);
    done += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace volferry::cli::mover
