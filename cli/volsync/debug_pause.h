// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/console.h"

namespace volferry::cli::volsync {

// Makes `folder`/exit-debug-if-removed, says what can be done now, and waits until the file is
// removed. The process's exit code: 0, that of the signal that ended it, or 1 where the file cannot
// be made.
int debug_pause(const std::string& folder, std::string_view role, Console& console);

}  // namespace volferry::cli::volsync
