// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/sync.h"

namespace volferry::cli {

// While it lives, SIGINT sets the flag to 130 and SIGTERM or SIGHUP to 143, so that the work ends
// in a consistent state; a second signal ends the process at once with that exit code. One object
// at a time; the flag outlives it.
class StopSignals {
 public:
  explicit StopSignals(StopFlag& stop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// Once at the start of the process: writing to a closed pipe is an error and not a signal,
// descriptors 0 to 2 are open (a volume's file must never become standard output), and no core dump
// can hold a key.
void prepare_process();

}  // namespace volferry::cli
