// SPDX-License-Identifier: Apache-2.0
// Path bytes as text that cannot break a line, a terminal or a JSON document.
#pragma once

#include <string>
#include <string_view>

namespace volferry::cli {

// Valid, printable UTF-8 stays; a backslash becomes `\\`; control characters (C0, DEL and C1) and
// every byte that is not part of valid UTF-8 become `\xHH`, lower-case. The original bytes can be
// recovered from the result.
std::string escape_bytes(std::string_view bytes);

// The same for a whole message that may hold escaped paths already: backslashes stay single.
// Applying it twice changes nothing.
std::string escape_line(std::string_view text);

}  // namespace volferry::cli
