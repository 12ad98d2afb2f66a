// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/command_words.h"

namespace volferry::transport {

namespace {

// Takes the rest of a quoted part off `text` into `word`; false where the quote is not closed.
bool take_quoted(std::string_view& text, char quote, std::string& word) {
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == quote) return true;
    const bool escape = quote == '"' && c == '\\' && !text.empty() &&
                        std::string_view("$`\"\\").find(text.front()) != std::string_view::npos;
    word.push_back(escape ? text.front() : c);
    if (escape) text.remove_prefix(1);
  }
  return false;
}

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  const std::string all(text);
  bool in_word = false;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (blank(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\'' || c == '"') {
      if (!take_quoted(text, c, words.back())) {
        return fail_with(Code::kUsage, "a quote is not closed in: " + all);
      }
    } else if (c == '\\') {
      if (text.empty()) return fail_with(Code::kUsage, "a backslash ends: " + all);
      words.back().push_back(text.front());
      text.remove_prefix(1);
    } else {
      words.back().push_back(c);
    }
  }
  if (words.empty()) return fail_with(Code::kUsage, "the command is empty");
  return words;
}

std::string quote_word(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "'";
}

}  // namespace volferry::transport
