// SPDX-License-Identifier: Apache-2.0
// Command lines to and from words, without a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace volferry::transport {

// Splits as a POSIX shell would: blanks, single quotes, double quotes (backslash before $ ` "
// \ only), backslash. No expansion of any kind. kUsage for an open quote, a trailing backslash or
// no word at all.
Result<std::vector<std::string>> split_words(std::string_view text);

// The word in single quotes, so that any shell hands it on unchanged.
std::string quote_word(std::string_view word);

}  // namespace volferry::transport
