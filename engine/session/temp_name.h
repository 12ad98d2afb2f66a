// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace volferry::session {

// The temporary that a file is built in: ".volferry-<32 hex>.tmp" beside it, the digits a hash of
// its name, so that a later run finds and reuses what an interrupted one had built. Always short
// enough for NAME_MAX.
std::string temp_name(std::string_view name);
// True for any name of that form. Such names are never carried from a source.
bool is_temp_name(std::string_view name);

}  // namespace volferry::session
