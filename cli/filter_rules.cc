// SPDX-License-Identifier: Apache-2.0
#include "cli/filter_rules.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iostream>

#include "cli/escape.h"

namespace volferry::cli {

namespace {

Result<std::vector<FilterRule>> read_rules(std::istream& in) {
  std::vector<FilterRule> rules;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    VF_ASSIGN(FilterRule rule, parse_filter_rule(line, false));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

Result<FilterRule> parse_filter_rule(std::string_view pattern, bool include) {
  if (pattern.starts_with("+ ") || pattern.starts_with("- ")) {
    include = pattern[0] == '+';
    pattern.remove_prefix(2);
  }
  if (pattern.empty()) return fail_with(Code::kUsage, "the pattern is empty");
  return FilterRule{include, std::string(pattern)};
}

Result<std::vector<FilterRule>> read_filter_file(const std::string& path) {
  if (path == "-") return read_rules(std::cin);
  errno = 0;
  std::ifstream in(path);
  // Opening a directory works; reading it does not.
  if (in) in.peek();
  if (in.fail() && !in.eof())
    return fail_with(Code::kUsage, fmt::format("cannot read {}", escape_bytes(path)), errno);
  return read_rules(in);
}

}  // namespace volferry::cli
