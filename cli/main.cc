// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/report.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  using namespace volferry;
  cli::prepare_process();
  cli::Console console(cli::Console::standard());
  try {
    return cli::run_command({argv + std::min(argc, 1), argv + argc}, console);
  } catch (const std::exception& error) {
    console.err(cli::error_line({Code::kInternal, 0, error.what()}));
    return exit_code(Code::kInternal);
  }
}
