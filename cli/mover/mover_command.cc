// SPDX-License-Identifier: Apache-2.0
// `volferry mover`: settings from the environment, JSON for the controller. docs/mover.md.
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/mover/mover.h"

namespace volferry::cli {

namespace {

Result<mover::Settings> settings_of(const MoverArguments& arguments,
                                    const mover::Environment& environment) {
  VF_ASSIGN(mover::Settings settings, mover::parse_settings(arguments.role, environment));
  if (arguments.metrics) settings.metrics = *arguments.metrics;
  return settings;
}

std::string result_line(const mover::Outcome& outcome) {
  return mover::result_json(outcome) + '\n';
}

}  // namespace

int mover_command(const CommandArguments& arguments, Console& console) {
  const auto parsed = parse_mover(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed)) {
    console.out_text(help->text);
    return 0;
  }
  const auto& mover = std::get<MoverArguments>(*parsed);
  mover::Environment environment = mover::process_environment();
  auto settings = settings_of(mover, environment);
  return mover::run_mover({.role = mover.role,
                           .environment = std::move(environment),
                           .settings = std::move(settings),
                           .json = true,
                           .closing = result_line},
                          console);
}

}  // namespace volferry::cli
