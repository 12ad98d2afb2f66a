// SPDX-License-Identifier: Apache-2.0
// One mover from its settings to its result: keys, confinement, the run, what it prints.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/mover/result.h"
#include "cli/mover/settings.h"

namespace volferry::cli::mover {

// The last text on standard output, line ends included.
using Closing = std::string (*)(const Outcome& outcome);

struct MoverJob {
  Role role = Role::kSource;
  Environment environment;    // names the termination log, also where the settings are wrong
  Result<Settings> settings;  // an error is the run's outcome
  bool json = true;           // events as JSON lines; else text for a person
  Closing closing = nullptr;
};

// Runs it to its end; the process's exit code. May end the process by itself where the run hangs
// after it was told to stop.
int run_mover(MoverJob job, Console& console);

}  // namespace volferry::cli::mover
