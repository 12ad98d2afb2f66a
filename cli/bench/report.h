// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace volferry::cli::bench {

// The table for people: aligned columns, each line ended by a line feed.
std::string table(const std::vector<Row>& rows);
// One `{"event":"measurement",...}` object, without a line end. Rates are whole numbers a second,
// null where missing.
std::string row_json(const Row& row);
// Which stage of a transfer over TLS is the slowest here, in one sentence; says so where too little
// was measured.
std::string bottleneck(const std::vector<Row>& rows);

}  // namespace volferry::cli::bench
