// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "cli/escape.h"

namespace volferry::cli {

namespace {

constexpr std::size_t kHelpColumn = 30;
constexpr std::size_t kHelpWidth = 100;

// `-n,--dry-run` as a list; the '!' of an opposite is dropped.
std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> list;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    if (name.starts_with('!')) name.remove_prefix(1);
    list.emplace_back(name);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return list;
}

// Words of `text` in lines of at most `width`, each but the first indented.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

// Edits that turn one word into the other: a letter inserted, left out or replaced, or two
// neighbours swapped (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], above[j - 2] + 1);
    }
    above = std::exchange(last, std::move(row));
  }
  return last.back();
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known) {
  std::optional<std::string> best;
  const std::size_t letters = name.size() - std::min(name.find_first_not_of('-'), name.size());
  std::size_t best_distance = 1 + std::max<std::size_t>(1, letters / 3);
  for (const std::string& candidate : known) {
    // An abbreviation is meant more often than a typing error.
    const bool prefix = name.size() >= 4 && candidate.starts_with(name);
    const std::size_t distance = prefix ? 0 : edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

struct CommandLine::Impl {
  struct Entry {
    std::string group;
    std::vector<std::string> names;
    std::string metavar;
    std::string help;
    CLI::Option* option = nullptr;
  };
  struct Value {
    std::string name;
    Convert convert;
    std::vector<std::string> texts;
    std::size_t applied = 0;
  };
  struct Endpoint {
    std::string text;
    CLI::Option* option = nullptr;
  };

  CommandText text;
  CLI::App app;
  std::string current_group = "Options";
  std::vector<Entry> entries;
  std::deque<Value> values;  // CLI11 keeps references to the texts
  std::map<const CLI::Option*, Value*> value_of;
  std::vector<std::string>* endpoints = nullptr;
  std::deque<Endpoint> endpoint_texts;

  void remember(const std::string& names, std::string metavar, std::string help,
                CLI::Option* option) {
    entries.push_back(
        {current_group, split_names(names), std::move(metavar), std::move(help), option});
  }

  std::vector<std::string> known_names() const {
    std::vector<std::string> names = {"--help"};
    for (const Entry& entry : entries)
      for (const std::string& name : entry.names)
        if (name.starts_with("--")) names.push_back(name);
    return names;
  }

  std::string unknown_option(std::string_view argument) const {
    const std::string_view name = argument.substr(0, std::min(argument.find('='), argument.size()));
    const std::optional<std::string> near = nearest_name(name, known_names());
    if (near)
      return fmt::format("unknown option '{}', did you mean {}?", escape_bytes(name), *near);
    return fmt::format("unknown option '{}'", escape_bytes(name));
  }

  // CLI11 would take `--flag=false` for its own boolean words; flags here have `--no-` forms.
  std::optional<std::string> flag_with_value(const std::vector<std::string>& arguments) const {
    for (const std::string& argument : arguments) {
      if (argument == "--") break;
      const std::string name = argument.substr(0, argument.find('='));
      if (name.size() == argument.size()) continue;
      for (const Entry& entry : entries)
        if (entry.metavar.empty() &&
            std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end())
          return name;
    }
    return std::nullopt;
  }

  // CLI11 takes the next argument for the value of `--name=`; a user means an empty one.
  std::optional<std::string> empty_value(const std::vector<std::string>& arguments) const {
    for (const std::string& argument : arguments) {
      if (argument == "--") break;
      if (!argument.starts_with("--") || !argument.ends_with('=')) continue;
      const std::string name = argument.substr(0, argument.size() - 1);
      const std::vector<std::string> names = known_names();
      if (std::find(names.begin(), names.end(), name) != names.end()) return name;
    }
    return std::nullopt;
  }
};

CommandLine::CommandLine(CommandText text) : impl_(std::make_unique<Impl>()) {
  impl_->text = std::move(text);
  impl_->app.allow_extras();
  impl_->app.set_help_flag("-h,--help");
}

CommandLine::~CommandLine() = default;

void CommandLine::group(std::string title) { impl_->current_group = std::move(title); }

void CommandLine::flag(const std::string& names, bool& target, std::string help) {
  impl_->remember(names, "", std::move(help), impl_->app.add_flag(names, target));
}

void CommandLine::counter(const std::string& names, int& target, std::string help) {
  impl_->remember(names, "", std::move(help), impl_->app.add_flag(names, target));
}

void CommandLine::text(const std::string& names, std::string metavar, std::string& target,
                       std::string help) {
  value(
      names, std::move(metavar),
      [&target](std::string_view text) -> Status {
        target = text;
        return {};
      },
      std::move(help));
}

void CommandLine::value(const std::string& names, std::string metavar, Convert convert,
                        std::string help) {
  Impl::Value& value = impl_->values.emplace_back();
  value.name = split_names(names).back();
  value.convert = std::move(convert);
  CLI::Option* option = impl_->app.add_option(names, value.texts)->allow_extra_args(false);
  impl_->value_of[option] = &value;
  impl_->remember(names, std::move(metavar), std::move(help), option);
}

void CommandLine::endpoints(std::vector<std::string>& target) {
  impl_->endpoints = &target;
  // Not one option for both: CLI11 splits an argument of the form `[a,b]` where several may follow.
  for (const char* name : {"SRC", "DST"}) {
    Impl::Endpoint& endpoint = impl_->endpoint_texts.emplace_back();
    endpoint.option = impl_->app.add_option(name, endpoint.text);
  }
}

Result<std::optional<std::string>> CommandLine::parse(const std::vector<std::string>& arguments) {
  if (const auto name = impl_->empty_value(arguments))
    return usage_error(fmt::format("option {} needs a value", *name));
  if (const auto name = impl_->flag_with_value(arguments))
    return usage_error(fmt::format("option {} takes no value", *name));
  try {
    impl_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return help();
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view what = error.what();
    return usage_error(fmt::format("option {} needs a value", what.substr(0, what.find(':'))));
  } catch (const CLI::Error& error) {
    return usage_error(escape_line(error.what()));
  }

  for (const std::string& argument : impl_->app.remaining()) {
    if (argument == "--") continue;
    if (argument.starts_with('-') && argument.size() > 1)
      return usage_error(impl_->unknown_option(argument));
    return usage_error(fmt::format("unexpected argument '{}'", escape_bytes(argument)));
  }

  for (const Impl::Endpoint& endpoint : impl_->endpoint_texts)
    if (endpoint.option->count() > 0) impl_->endpoints->push_back(endpoint.text);
  for (const CLI::Option* option : impl_->app.parse_order()) {
    const auto found = impl_->value_of.find(option);
    if (found == impl_->value_of.end()) continue;
    Impl::Value& value = *found->second;
    if (value.applied == value.texts.size()) continue;
    const Status status = value.convert(value.texts[value.applied++]);
    if (!status)
      return usage_error(fmt::format("option {}: {}", value.name, status.error().message()));
  }
  return std::nullopt;
}

std::unexpected<Error> CommandLine::usage_error(std::string_view what) const {
  return fail_with(Code::kUsage,
                   fmt::format("{}; see 'volferry {} --help'", what, impl_->text.name));
}

bool CommandLine::given(const std::string& name) const {
  for (const Impl::Entry& entry : impl_->entries)
    if (std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end())
      return entry.option->count() > 0;
  return false;
}

std::string CommandLine::help() const {
  std::string out = fmt::format("Usage: volferry {} {}\n\n{}\n", impl_->text.name,
                                impl_->text.synopsis, wrap(impl_->text.description, 0, kHelpWidth));
  std::string_view group;
  for (const Impl::Entry& entry : impl_->entries) {
    if (entry.group != group) out += fmt::format("\n{}:\n", entry.group);
    group = entry.group;
    // A long name without a short one lines up with those that have both.
    std::string names = entry.names.front().starts_with("--") ? "      " : "  ";
    for (std::size_t i = 0; i < entry.names.size(); ++i)
      names += (i == 0 ? "" : ", ") + entry.names[i];
    if (!entry.metavar.empty()) names += " " + entry.metavar;
    if (names.size() + 2 > kHelpColumn)
      out += names + "\n" + std::string(kHelpColumn, ' ');
    else
      out += fmt::format("{:<{}}", names, kHelpColumn);
    out += wrap(entry.help, kHelpColumn, kHelpWidth) + "\n";
  }
  out += fmt::format("{:<{}}print this text\n", "  -h, --help", kHelpColumn);
  if (!impl_->text.epilog.empty()) out += "\n" + impl_->text.epilog;
  return out;
}

}  // namespace volferry::cli
