// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/progress.h"

#include "engine/summary.h"

namespace volferry::cli {

// "ok" (0), "partial" (3, 4) or "failed".
std::string result_name(int exit_code);
// The progress event.
std::string progress_json(const ProgressMeter& meter);
// The summary event: one line without its end. docs/cli.md lists the fields.
std::string summary_json(const Summary& summary, int exit_code);

}  // namespace volferry::cli
