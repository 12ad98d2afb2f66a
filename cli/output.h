// SPDX-License-Identifier: Apache-2.0
// What a command shows while it works and at its end, as text or as JSON.
#pragma once

#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/progress.h"

#include "engine/observer.h"

namespace volferry::cli {

enum class CommandKind { kSync, kVerify, kServe, kMoverSource, kMoverDestination };

// What the work is about; stated once at the start.
struct Work {
  CommandKind kind = CommandKind::kSync;
  std::string source;  // of a server or mover: its volume
  std::string destination;
  bool remote = false;
  bool dry_run = false;
};

// The observer of one run, and its end. Calls come one at a time, as the engine promises.
class Output : public Observer {
 public:
  virtual void start() {}
  // `serve` is ready for clients.
  virtual void listening(const std::string& address) = 0;
  // The outcome, fatal errors included. Last call.
  virtual void finish(const Summary& summary, int exit_code) = 0;
};

// The console outlives the output.
std::unique_ptr<Output> make_text_output(Console& console, const OutputArguments& arguments,
                                         Work work, Clock clock);
std::unique_ptr<Output> make_json_output(Console& console, const OutputArguments& arguments,
                                         Work work, Clock clock);
// One of the two, by `--json`, with the system's monotonic clock.
std::unique_ptr<Output> make_output(Console& console, const OutputArguments& arguments, Work work);

// The outcome of a run that ended before it began.
Summary failed_summary(Error error);

}  // namespace volferry::cli
