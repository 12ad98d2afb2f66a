// SPDX-License-Identifier: Apache-2.0
// Errors as the one line that a person reads: what, where, why, and what to do next.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/summary.h"

namespace volferry::cli {

// `volferry: error: WHAT: WHERE: WHY; HINT`, without a line end, escaped. A context that holds a
// hint already (anything after "; ") gets no second one.
std::string error_line(const Error& error);
// The same for one item of a volume.
std::string item_error_line(const ItemError& error);
// `volferry: warning: ...`.
std::string warning_line(const ItemError& warning);

// What was tried, on what, and the system's reason: the middle of the lines above, not escaped but
// for the path. Parts that `what` names already are not repeated.
std::string item_text(const ItemError& error);

}  // namespace volferry::cli
