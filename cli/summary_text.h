// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "cli/output.h"

#include "engine/summary.h"

namespace volferry::cli {

// Seconds spent in each phase, in the order of the phases.
using PhaseTimes = std::map<ProgressSnapshot::Phase, double>;

// `123 files, 4.50 GB; sent 45.0 MB in 2.1 s (99 % saved)`; for a dry run what would change; for
// verify what was compared.
std::string summary_line(const Summary& summary, const Work& work);
// One item of a change list: `>f+++++++++ path`, `cL+++++++++ l -> t`, `hf+++++++++ b => a`,
// `*deleting   path`; escaped.
std::string itemize_line(const ItemChangeEvent& event);
// The table of `--stats`: aligned lines, each ended by a line feed.
std::string stats_table(const Summary& summary, const Work& work, const PhaseTimes& phases);

}  // namespace volferry::cli
