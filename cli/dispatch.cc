// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/report.h"

namespace volferry::cli {

namespace {

struct CommandEntry {
  std::string_view name;
  int (*run)(const CommandArguments&, Console&);
};
constexpr CommandEntry kEntries[] = {
    {"sync", sync_command},       {"serve", serve_command},     {"mover", mover_command},
    {"volsync", volsync_command}, {"verify", verify_command},   {"bench", bench_command},
    {"keygen", keygen_command},   {"version", version_command}, {"--version", version_command},
};

int print_main_help(Console& console) {
  console.out_text(main_help());
  return 0;
}

int dispatch(const CommandArguments& arguments, Console& console) {
  if (arguments.empty())
    return report_failure(
        {Code::kUsage, 0,
         "no command was given: sync, serve, mover, verify, bench, keygen or version; see "
         "'volferry --help'"},
        arguments, console);
  const std::string& word = arguments.front();
  if (word == "-h" || word == "--help") return print_main_help(console);
  if (word == "help") {
    if (arguments.size() == 1) return print_main_help(console);
    return dispatch({arguments[1], "--help"}, console);
  }
  const auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](const CommandEntry& row) { return row.name == word; });
  if (entry == std::end(kEntries))
    return report_failure(unknown_command(word).error(), arguments, console);
  return entry->run({arguments.begin() + 1, arguments.end()}, console);
}

}  // namespace

int run_command(const CommandArguments& arguments, Console& console) {
  const int code = dispatch(arguments, console);
  if (console.out_ok() || code != 0) return code;
  console.err(
      "volferry: error: standard output: the report could not be written; check the pipe or disk "
      "it "
      "goes to");
  return exit_code(Code::kInternal);
}

int report_failure(const Error& error, const CommandArguments& arguments, Console& console) {
  console.err(error_line(error));
  const int code = exit_code(error.code);
  if (std::find(arguments.begin(), arguments.end(), "--json") != arguments.end())
    console.out(summary_json(failed_summary(error), code));
  return code;
}

}  // namespace volferry::cli
