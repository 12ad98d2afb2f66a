// SPDX-License-Identifier: Apache-2.0
// Matching simulates all positions of the pattern at once (Thompson, 1968), so its time is at most
// pattern times text whatever the pattern: "*a*a*a*b" cannot make it exponential.
#include "engine/session/filter.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace volferry::session {

namespace {

// Adds the bytes of a named class, "alpha" to "xdigit", as in the C locale; false for another name.
bool add_class(std::string_view name, std::vector<bool>& set) {
  struct Row {
    std::string_view name;
    int (*test)(int);
  };
  static constexpr Row kRows[] = {
      {"alnum", std::isalnum}, {"alpha", std::isalpha}, {"blank", std::isblank},
      {"cntrl", std::iscntrl}, {"digit", std::isdigit}, {"graph", std::isgraph},
      {"lower", std::islower}, {"print", std::isprint}, {"punct", std::ispunct},
      {"space", std::isspace}, {"upper", std::isupper}, {"xdigit", std::isxdigit}};
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    for (int b = 0; b < 128; ++b) {
      if (row.test(b) != 0) set[static_cast<std::size_t>(b)] = true;
    }
    return true;
  }
  return false;
}

}  // namespace

std::vector<Filter::Token> Filter::parse(std::string_view pattern) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const auto c = static_cast<unsigned char>(pattern[i]);
    if (c == '*') {
      std::size_t stars = 1;
      while (i + 1 < pattern.size() && pattern[i + 1] == '*') {
        ++i;
        ++stars;
      }
      tokens.push_back({stars > 1 ? Token::Kind::kDoubleStar : Token::Kind::kStar, 0, {}});
    } else if (c == '?') {
      tokens.push_back({Token::Kind::kAnyByte, 0, {}});
    } else if (c == '[') {
      std::size_t j = i + 1;
      const bool negated = j < pattern.size() && (pattern[j] == '!' || pattern[j] == '^');
      if (negated) ++j;
      std::vector<bool> set(256, false);
      bool closed = false;
      for (bool first = true; j < pattern.size(); first = false, ++j) {
        if (pattern[j] == ']' && !first) {
          closed = true;
          break;
        }
        const std::size_t end =
            pattern.substr(j, 2) == "[:" ? pattern.find(":]", j + 2) : std::string_view::npos;
        if (end != std::string_view::npos && add_class(pattern.substr(j + 2, end - j - 2), set)) {
          j = end + 1;
          continue;
        }
        if (pattern[j] == '\\' && j + 1 < pattern.size()) ++j;
        const auto low = static_cast<unsigned char>(pattern[j]);
        auto high = low;
        if (j + 2 < pattern.size() && pattern[j + 1] == '-' && pattern[j + 2] != ']') {
          j += 2;
          if (pattern[j] == '\\' && j + 1 < pattern.size()) ++j;
          high = static_cast<unsigned char>(pattern[j]);
        }
        for (unsigned b = low; b <= high; ++b) set[b] = true;
      }
      if (!closed) {  // no end: the bracket is an ordinary byte
        tokens.push_back({Token::Kind::kByte, c, {}});
        continue;
      }
      if (negated) set.flip();
      set['/'] = false;
      tokens.push_back({Token::Kind::kClass, 0, std::move(set)});
      i = j;
    } else {
      const bool escape = c == '\\' && i + 1 < pattern.size();
      if (escape) ++i;
      tokens.push_back({Token::Kind::kByte, static_cast<unsigned char>(pattern[i]), {}});
    }
  }
  return tokens;
}

bool Filter::matches(const std::vector<Token>& tokens, std::string_view text) {
  std::vector<char> now(tokens.size() + 1, 0);
  std::vector<char> next(tokens.size() + 1, 0);
  const auto close = [&](std::vector<char>& states) {  // a star may match nothing
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool star =
          tokens[i].kind == Token::Kind::kStar || tokens[i].kind == Token::Kind::kDoubleStar;
      if (states[i] != 0 && star) states[i + 1] = 1;
    }
  };
  now[0] = 1;
  close(now);
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    std::fill(next.begin(), next.end(), 0);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (now[i] == 0) continue;
      switch (tokens[i].kind) {
        case Token::Kind::kByte:
          next[i + 1] |= static_cast<char>(tokens[i].byte == c);
          break;
        case Token::Kind::kAnyByte:
          next[i + 1] |= static_cast<char>(c != '/');
          break;
        case Token::Kind::kClass:
          next[i + 1] |= static_cast<char>(tokens[i].set[c]);
          break;
        case Token::Kind::kStar:
          next[i] |= static_cast<char>(c != '/');
          break;
        case Token::Kind::kDoubleStar:
          next[i] = 1;
          break;
      }
    }
    close(next);
    now.swap(next);
  }
  return now[tokens.size()] != 0;
}

Filter::Filter(const std::vector<FilterRule>& rules) {
  for (const FilterRule& source : rules) {
    std::string_view pattern = source.pattern;
    if (pattern.empty()) continue;
    Rule rule;
    rule.include = source.include;
    if (pattern.ends_with("/***")) {
      rule.and_below = true;
      pattern.remove_suffix(1);  // "/**" for what lies below
    } else if (pattern.size() > 1 && pattern.ends_with('/')) {
      rule.directories_only = true;
      pattern.remove_suffix(1);
    }
    rule.anchored = pattern.starts_with('/');
    if (rule.anchored) pattern.remove_prefix(1);
    rule.whole_path = rule.anchored || pattern.find('/') != std::string_view::npos ||
                      pattern.find("**") != std::string_view::npos;
    rule.tokens = parse(pattern);
    rules_.push_back(std::move(rule));
  }
}

bool Filter::rule_matches(const Rule& rule, std::string_view path, bool is_directory) {
  if (rule.directories_only && !is_directory) return false;
  const auto match_path = [&](std::string_view text) {
    if (!rule.whole_path) return matches(rule.tokens, text.substr(text.rfind('/') + 1));
    if (matches(rule.tokens, text)) return true;
    if (rule.anchored) return false;
    for (std::size_t at = text.find('/'); at != std::string_view::npos;
         at = text.find('/', at + 1)) {
      if (matches(rule.tokens, text.substr(at + 1))) return true;
    }
    return false;
  };
  if (match_path(path)) return true;
  // "dir/***" matches dir by matching "dir/" with the empty rest.
  return rule.and_below && is_directory && match_path(std::string(path) + "/");
}

bool Filter::excluded(std::string_view path, bool is_directory) const {
  for (const Rule& rule : rules_) {
    if (rule_matches(rule, path, is_directory)) return !rule.include;
  }
  return false;
}

}  // namespace volferry::session
