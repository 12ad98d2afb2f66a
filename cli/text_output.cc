// SPDX-License-Identifier: Apache-2.0
// Output for people: changes and differences on standard output, everything else on standard error.
#include <fmt/format.h>

#include <optional>

#include "cli/escape.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/summary_text.h"
#include "cli/units.h"

namespace volferry::cli {

namespace {

// Adds up the time between snapshots by phase.
class PhaseClock {
 public:
  // Until the first snapshot a remote run connects, and a local one is at work.
  PhaseClock(TimePoint start, bool remote)
      : phase_(remote ? ProgressSnapshot::Phase::kConnect : ProgressSnapshot::Phase::kSync),
        since_(start) {}
  void enter(ProgressSnapshot::Phase phase, TimePoint now) {
    times_[phase_] += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    phase_ = phase;
  }
  // The phases so far, the running one up to `now`. Those too short to show are left out.
  PhaseTimes times(TimePoint now) {
    enter(phase_, now);
    PhaseTimes shown = times_;
    std::erase_if(shown, [](const auto& entry) { return entry.second < 0.005; });
    return shown;
  }

 private:
  ProgressSnapshot::Phase phase_;
  TimePoint since_;
  PhaseTimes times_;
};

class TextOutput : public Output {
 public:
  TextOutput(Console& console, const OutputArguments& arguments, Work work, Clock clock)
      : console_(console),
        arguments_(arguments),
        work_(std::move(work)),
        clock_(std::move(clock)),
        phases_(clock_(), work_.remote),
        bar_(console, progress_mode(arguments, work_), clock_) {}

  void listening(const std::string& address) override {
    console_.out("listening on " + address);
    console_.flush_out();
  }

  void on_change(const ItemChangeEvent& event) override {
    if (arguments_.itemize) console_.out(itemize_line(event));
  }

  void on_error(const ItemError& error) override {
    if (errors_++ < Summary::kMaxErrors) console_.err(item_error_line(error));
  }

  void on_warning(const ItemError& warning) override {
    if (!arguments_.quiet) console_.err(warning_line(warning));
  }

  void on_difference(const DifferenceEvent& event) override {
    std::string kinds;
    for (const std::string& kind : event.kinds) kinds += (kinds.empty() ? "" : ",") + kind;
    const std::string line = fmt::format("{} {}", kinds, escape_bytes(event.path));
    if (work_.kind == CommandKind::kVerify)
      console_.out(line);
    else
      console_.err("volferry: error: difference after the sync: " + line);
  }

  void on_progress(const ProgressSnapshot& snapshot) override {
    phases_.enter(snapshot.phase, clock_());
    bar_.update(snapshot);
  }

  void finish(const Summary& summary, int exit_code) override {
    bar_.clear();
    if (errors_ > Summary::kMaxErrors)
      console_.err(fmt::format("volferry: error: {} more errors, not shown",
                               format_count(errors_ - Summary::kMaxErrors)));
    // What `verify` found is its result and stands on standard output already.
    if (summary.fatal && summary.fatal->code != Code::kDifferences)
      console_.err(error_line(*summary.fatal));
    if (!summary.fatal) print_summary(summary, exit_code);
  }

 private:
  static When progress_mode(const OutputArguments& arguments, const Work& work) {
    if (arguments.progress == When::kAuto && (arguments.quiet || work.kind == CommandKind::kServe))
      return When::kOff;
    return arguments.progress;
  }

  void print_summary(const Summary& summary, int exit_code) {
    if (work_.kind == CommandKind::kServe) {
      if (arguments_.stats) console_.out_text(stats_table(summary, work_, phases_.times(clock_())));
      return;
    }
    const std::string line = summary_line(summary, work_);
    const bool equal = work_.kind == CommandKind::kVerify && exit_code == 0;
    const bool only_result = work_.dry_run && !arguments_.itemize;
    if (arguments_.stats) {
      console_.out(line);
      console_.out_text(stats_table(summary, work_, phases_.times(clock_())));
    } else if (arguments_.quiet) {
      return;
    } else if (equal || only_result) {
      console_.out(line);
    } else if (console_.err_terminal()) {
      console_.err(line);
    }
  }

  Console& console_;
  const OutputArguments arguments_;
  const Work work_;
  Clock clock_;
  PhaseClock phases_;
  ProgressBar bar_;
  std::uint64_t errors_ = 0;
};

}  // namespace

std::unique_ptr<Output> make_text_output(Console& console, const OutputArguments& arguments,
                                         Work work, Clock clock) {
  return std::make_unique<TextOutput>(console, arguments, std::move(work), std::move(clock));
}

}  // namespace volferry::cli
