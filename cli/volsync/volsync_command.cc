// SPDX-License-Identifier: Apache-2.0
// `volferry volsync`: the mover as VolSync's operator runs its rsync-tls mover. docs/volsync.md.
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/mover/mover.h"
#include "cli/volsync/closing.h"
#include "cli/volsync/debug_pause.h"
#include "cli/volsync/environment.h"

namespace volferry::cli {

int volsync_command(const CommandArguments& arguments, Console& console) {
  const auto parsed = parse_volsync(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed)) {
    console.out_text(help->text);
    return 0;
  }
  const mover::Role role = std::get<MoverArguments>(*parsed).role;
  mover::Environment environment = volsync::read_environment();
  if (volsync::wants_debugging(environment))
    return volsync::debug_pause("/tmp", mover::role_name(role), console);
  auto settings = volsync::read_settings(role, environment);
  return mover::run_mover({.role = role,
                           .environment = std::move(environment),
                           .settings = std::move(settings),
                           .json = false,
                           .closing = volsync::closing_lines},
                          console);
}

}  // namespace volferry::cli
