// SPDX-License-Identifier: Apache-2.0
// One command's options: CLI11 does the parsing; help, errors and the order of options are ours.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace volferry::cli {

// Texts of `--help` around the list of options.
struct CommandText {
  std::string name;         // "sync"
  std::string synopsis;     // "[options] SRC DST"
  std::string description;  // one paragraph
  std::string epilog;       // examples, exit codes
};

// Declares the options of one command, then parses. Names are written as CLI11 takes them:
// `-n,--dry-run`, and
// `--owner,!--no-owner` for a flag and its opposite. Targets outlive the parser and keep their
// value where the option is absent; where an option is repeated the last one counts, unless its
// converter collects. Not thread-safe.
class CommandLine {
 public:
  // Takes the option's text; an error (any code) becomes a usage error that names the option.
  using Convert = std::function<Status(std::string_view)>;

  explicit CommandLine(CommandText text);
  ~CommandLine();

  // Heading in the help text for the options that follow.
  void group(std::string title);
  void flag(const std::string& names, bool& target, std::string help);
  // How often the flag is given.
  void counter(const std::string& names, int& target, std::string help);
  void text(const std::string& names, std::string metavar, std::string& target, std::string help);
  // Converters of all options run after parsing, in the order of the command line.
  void value(const std::string& names, std::string metavar, Convert convert, std::string help);
  // At most two arguments that are no options: the ends of a sync. Those given are appended to the
  // target by `parse`.
  void endpoints(std::vector<std::string>& target);

  // The help text if it was asked for; nothing if the targets have been set. Errors: kUsage, one
  // line that ends in a pointer to the help.
  Result<std::optional<std::string>> parse(const std::vector<std::string>& arguments);
  std::string help() const;
  // A usage error with the pointer to this command's help at its end.
  std::unexpected<Error> usage_error(std::string_view what) const;
  // True if the option was on the command line (after `parse`); `name` with its dashes.
  bool given(const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The name among `known` that a mistyped option most likely meant, or nothing if none is near.
std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known);

}  // namespace volferry::cli
