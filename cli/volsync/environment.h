// SPDX-License-Identifier: Apache-2.0
// What VolSync's operator asks of its rsync-tls mover, read from the environment that it gives the
// pod. docs/volsync.md has the table.
#pragma once

#include "cli/mover/settings.h"

namespace volferry::cli::volsync {

// The variables of the process that matter: those of VolSync's contract and VOLFERRY_...
mover::Environment read_environment();

// VOLFERRY_... as for `volferry mover`; VolSync's own variables win. Errors: kUsage, one line that
// begins with the variable's name. Pure.
Result<mover::Settings> read_settings(mover::Role role, const mover::Environment& environment);

// Whether somebody wants to look around in the pod first: DEBUG_MOVER=1.
bool wants_debugging(const mover::Environment& environment);

}  // namespace volferry::cli::volsync
