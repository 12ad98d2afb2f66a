// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/unique_fd.h"

namespace volferry::cli::mover {

// The file that a pod's termination message is read from. Opened at the start, because later the
// process may be confined to its volume.
class TerminationLog {
 public:
  // `create`: make the file if it is not there.
  static Result<TerminationLog> open(const std::string& path, bool create);
  // Replaces the content by this line.
  Status write(std::string_view line);

 private:
  TerminationLog(std::string path, base::UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  base::UniqueFd fd_;
};

}  // namespace volferry::cli::mover
