// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/unique_fd.h"

namespace volferry::transport {

// A running child. Its destructor gives it kExitTime to end by itself (its pipes must be closed by
// then), then terminates, then kills it; in any case it is reaped.
class ChildProcess {
 public:
  // Starts words[0], searched in PATH, with `in` and `out` as its standard input and output; stderr
  // is shared. kConnect naming the program where it cannot be started.
  static Result<std::shared_ptr<ChildProcess>> start(const std::vector<std::string>& words, int in,
                                                     int out);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // "exit status 255" or "signal 9" once it has ended within `patience`. One thread at a time.
  std::optional<std::string> wait_end(std::chrono::milliseconds patience);

 private:
  explicit ChildProcess(pid_t pid);
  bool ends_within(std::chrono::milliseconds patience);

  const pid_t pid_;
  base::UniqueFd pidfd_;
  std::optional<int> status_;
};

}  // namespace volferry::transport
