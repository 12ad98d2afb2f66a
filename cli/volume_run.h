// SPDX-License-Identifier: Apache-2.0
// What `sync` and `verify` have in common: two endpoints, an engine call, a report.
#pragma once

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

#include "engine/sync.h"

namespace volferry::cli {

// `run_sync` or `run_verify`.
using VolumeCall = Summary (*)(const Endpoint&, const Endpoint&, const SyncOptions&, Observer&,
                               base::Logger&, StopFlag&);

// Loads the keys, runs the call with signals leading to its stop flag, reports; returns the exit
// code. `raw`: the arguments as given, for a failure before the work begins.
int run_on_volumes(const SyncArguments& arguments, CommandKind kind, VolumeCall call,
                   const CommandArguments& raw, Console& console);

}  // namespace volferry::cli
