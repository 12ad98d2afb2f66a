// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cli/arguments.h"
#include "cli/console.h"

#include "engine/base/log.h"

namespace volferry::cli {

// The engine's log lines on standard error, one `volferry: LEVEL: TEXT` an event, escaped. Shown:
// errors with -q, warnings as well by default, info with -v, everything with -vv. The console
// outlives the logger. Thread-safe.
std::unique_ptr<base::Logger> make_logger(Console& console, const OutputArguments& output);

}  // namespace volferry::cli
