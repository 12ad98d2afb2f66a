// SPDX-License-Identifier: Apache-2.0
#include "cli/volsync/debug_pause.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/report.h"
#include "cli/signals.h"

#include "engine/base/unique_fd.h"

namespace volferry::cli::volsync {

int debug_pause(const std::string& folder, std::string_view role, Console& console) {
  const std::string file = folder + "/exit-debug-if-removed";
  StopFlag stop{0};
  const StopSignals signals(stop);
  if (!base::UniqueFd(::open(file.c_str(), O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600))) {
    console.err(error_line(fail_sys(file).error()));
    return exit_code(Code::kInternal);
  }
  console.out(
      fmt::format("DEBUG_MOVER=1: nothing is moved. To run this mover by hand in the pod:\n"
                  "  DEBUG_MOVER=0 volferry volsync {}\n"
                  "To end the pod:\n"
                  "  rm {}",
                  role, file));
  console.flush_out();
  while (stop.load() == 0 && ::access(file.c_str(), F_OK) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return stop.load();
}

}  // namespace volferry::cli::volsync
