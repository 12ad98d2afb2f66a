// SPDX-License-Identifier: Apache-2.0
// One function a command: takes what follows the command's name, returns the process's exit code.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"

#include "engine/base/error.h"

namespace volferry::cli {

using CommandArguments = std::vector<std::string>;

int sync_command(const CommandArguments& arguments, Console& console);
int verify_command(const CommandArguments& arguments, Console& console);
int serve_command(const CommandArguments& arguments, Console& console);
int mover_command(const CommandArguments& arguments, Console& console);
int volsync_command(const CommandArguments& arguments, Console& console);
int keygen_command(const CommandArguments& arguments, Console& console);
int bench_command(const CommandArguments& arguments, Console& console);
int version_command(const CommandArguments& arguments, Console& console);

// Runs the command that the first argument names, and checks that standard output took everything.
int run_command(const CommandArguments& arguments, Console& console);

// Prints the error as its one line, and with `--json` among the arguments a failed summary on
// standard output.
int report_failure(const Error& error, const CommandArguments& arguments, Console& console);

}  // namespace volferry::cli
