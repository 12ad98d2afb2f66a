// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

namespace volferry::cli {

std::unique_ptr<Output> make_output(Console& console, const OutputArguments& arguments, Work work) {
  const Clock clock = [] { return std::chrono::steady_clock::now(); };
  if (arguments.json) return make_json_output(console, arguments, std::move(work), clock);
  return make_text_output(console, arguments, std::move(work), clock);
}

Summary failed_summary(Error error) {
  Summary summary;
  summary.fatal = std::move(error);
  return summary;
}

}  // namespace volferry::cli
