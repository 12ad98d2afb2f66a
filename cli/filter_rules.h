// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/options.h"

namespace volferry::cli {

// One pattern as `--exclude` and `--include` take it: as with rsync a leading `+ ` or `- ` decides
// over the option's own sense. kUsage for an empty pattern.
Result<FilterRule> parse_filter_rule(std::string_view pattern, bool include);

// The rules of an exclude file: one pattern a line, blank lines and lines that begin with `#` or
// `;` skipped; a carriage return at the end of a line is dropped. `-` reads standard input. kUsage
// where the file cannot be read.
Result<std::vector<FilterRule>> read_filter_file(const std::string& path);

}  // namespace volferry::cli
