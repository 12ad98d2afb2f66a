// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/mover/result.h"

namespace volferry::cli::volsync {

// The last lines of a run that went well, as VolSync's operator picks them out of a pod's log for
// `status.latestMoverStatus.logs`; nothing after a failure, where it takes the lines with `error`.
std::string closing_lines(const mover::Outcome& outcome);

}  // namespace volferry::cli::volsync
