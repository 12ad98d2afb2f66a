// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/mover/live_state.h"
#include "cli/mover/settings.h"

namespace volferry::cli::mover {

// The mover's figures in Prometheus's text format; docs/mover.md lists them.
std::string metrics_text(Role role, const LiveState::Totals& totals, bool healthy);

}  // namespace volferry::cli::mover
