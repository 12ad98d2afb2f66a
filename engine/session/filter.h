// SPDX-License-Identifier: Apache-2.0
// Include and exclude rules with rsync's pattern language (rsync(1), "PATTERN MATCHING RULES"): a
// leading '/' anchors at the volume's root, a trailing '/' matches directories only, '*' and '?'
// stop at '/', '**' does not, '[...]' is a class, '\' escapes, "dir/***" means dir and everything
// below. A pattern with an inner '/' or a "**" is matched against the end of the whole path, any
// other against the last component. The first rule that matches decides; without one an item is
// included.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/options.h"

namespace volferry::session {

class Filter {
 public:
  Filter() = default;
  explicit Filter(const std::vector<FilterRule>& rules);

  // `path` is relative to the root, without a leading '/'.
  bool excluded(std::string_view path, bool is_directory) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Token {
    enum class Kind : unsigned char { kByte, kAnyByte, kClass, kStar, kDoubleStar } kind;
    unsigned char byte = 0;
    std::vector<bool> set;  // kClass: 256 flags
  };
  struct Rule {
    bool include = false;
    bool anchored = false;
    bool whole_path = false;
    bool directories_only = false;
    bool and_below = false;  // "/***": the directory itself too
    std::vector<Token> tokens;
  };
  static std::vector<Token> parse(std::string_view pattern);
  static bool matches(const std::vector<Token>& tokens, std::string_view text);
  static bool rule_matches(const Rule& rule, std::string_view path, bool is_directory);

  std::vector<Rule> rules_;
};

}  // namespace volferry::session
