// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/volume_run.h"

namespace volferry::cli {

int verify_command(const CommandArguments& arguments, Console& console) {
  auto parsed = parse_verify(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed)) {
    console.out_text(help->text);
    return 0;
  }
  return run_on_volumes(std::get<SyncArguments>(*parsed), CommandKind::kVerify, run_verify,
                        arguments, console);
}

}  // namespace volferry::cli
