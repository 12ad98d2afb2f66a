// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/mover.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "cli/escape.h"
#include "cli/json_output.h"
#include "cli/logger.h"
#include "cli/mover/end_guard.h"
#include "cli/mover/http_endpoint.h"
#include "cli/mover/log_tail.h"
#include "cli/mover/run.h"
#include "cli/mover/termination_log.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/signals.h"

#include "engine/io/queue.h"

namespace volferry::cli::mover {

namespace {

// A log line as the tail has it.
std::string without_program(std::string line) {
  constexpr std::string_view kLead = "volferry: ";
  if (line.starts_with(kLead)) line.erase(0, kLead.size());
  return line;
}

// Events of items and progress on standard output, and what the endpoint and the result tell of
// them.
class MoverObserver final : public Observer {
 public:
  MoverObserver(Output& output, LiveState& live, LogTail& tail)
      : output_(output), live_(live), tail_(tail) {}
  void on_error(const ItemError& error) override {
    if (errors_++ < Summary::kMaxErrors) tail_.add(without_program(item_error_line(error)));
    output_.on_error(error);
  }
  void on_warning(const ItemError& warning) override {
    tail_.add(without_program(warning_line(warning)));
    output_.on_warning(warning);
  }
  void on_difference(const DifferenceEvent& event) override { output_.on_difference(event); }
  void on_progress(const ProgressSnapshot& snapshot) override {
    live_.update(snapshot);
    output_.on_progress(snapshot);
  }

 private:
  Output& output_;
  LiveState& live_;
  LogTail& tail_;
  std::uint64_t errors_ = 0;
};

OutputArguments output_arguments(bool json, base::LogLevel level) {
  OutputArguments output;
  output.json = json;
  output.progress_interval = std::chrono::seconds(2);
  output.quiet = level == base::LogLevel::kError;
  output.verbose = level == base::LogLevel::kInfo ? 1 : level == base::LogLevel::kDebug ? 2 : 0;
  return output;
}

// One mover from its arguments to its result.
class Mover {
 public:
  Mover(MoverJob job, Console& console)
      : console_(console),
        json_(job.json),
        closing_(job.closing),
        environment_(std::move(job.environment)) {
    settings_.role = job.role;
    open_termination_log();
    if (job.settings)
      settings_ = *std::move(job.settings);
    else
      refused_ = job.settings.error();
    plain_logger_ = make_logger(console, output_arguments(json_, settings_.log_level));
    logger_ = std::make_unique<TailLogger>(*plain_logger_, settings_.log_level, tail_);
    make_output_for(settings_.volume);
  }

  int run() {
    const StopSignals signals(stop_);
    // How long a destination has to wait is not its own affair.
    const bool limited = settings_.role == Role::kSource;
    const EndGuard guard(stop_, limited ? settings_.sync_timeout : std::chrono::milliseconds(0),
                         [this](bool timed_out) { end_overdue(timed_out); });
    Summary summary = refused_ ? failed_summary(*refused_) : prepare_and_move();
    const bool stopped = summary.fatal && summary.fatal->code == Code::kTerminated;
    if (stopped && guard.timed_out()) summary.fatal = sync_timeout_error();
    if (finishing_.exchange(true)) {
      // The guard is ending the process.
      for (;;) pause();
    }
    return finish(summary);
  }

 private:
  void make_output_for(const std::string& volume) {
    const bool source = settings_.role == Role::kSource;
    output_ =
        make_output(console_, output_arguments(json_, settings_.log_level),
                    {.kind = source ? CommandKind::kMoverSource : CommandKind::kMoverDestination,
                     .source = volume,
                     .remote = true});
  }

  void open_termination_log() {
    // Outside a pod nobody asked for the default one to be made.
    const std::string path = mover::termination_log(environment_);
    const bool asked_for = path != mover::termination_log({});
    auto log = TerminationLog::open(path, asked_for);
    if (log)
      termination_log_ = *std::move(log);
    else
      termination_problem_ = log.error().message();
  }

  Summary prepare_and_move() {
    if (auto ready = prepare(); !ready) return failed_summary(ready.error());
    output_->start();
    start_endpoint();
    MoverObserver observer(*output_, live_, tail_);
    const RunParts parts{settings_, volume_, own_, keys_, observer, *logger_, live_, peer_, stop_};
    if (settings_.role == Role::kSource) return run_source(parts);
    return run_destination(parts, [&](const std::string& address) { output_->listening(address); });
  }

  Status prepare() {
    VF_ASSIGN(volume_, choose_volume(settings_));
    VF_ASSIGN(own_.volume_mode, volume_mode(volume_));
    VF_TRY(check_io());
    make_output_for(volume_);
    VF_ASSIGN(keys_, transport::read_psk_folder(settings_.keys));
    own_.replication_id = settings_.replication_id;
    own_.epoch = settings_.epoch;
    own_.seq = settings_.seq;
    own_.attempt = settings_.attempt;
    own_.size = settings_.volume_size;
    own_.source_volume_id = settings_.source_volume_id;
    own_.final_sync_id = settings_.final_sync_id;
    own_.acknowledged = settings_.acknowledged;
    settings_.options.identity = encode_identity(own_);
    return confine();
  }

  // Each session would find it out anew, and tell it to a peer that cannot help.
  Status check_io() const {
    if (settings_.options.io != IoChoice::kUring) return {};
    const auto probed = io::probe_backend(io::BackendChoice::kUring);
    if (probed) return {};
    return fail_with(Code::kUsage, "VOLFERRY_IO: " + probed.error().message());
  }

  // Before any thread that talks to others is started. A source looks names up.
  Status confine() {
    const bool source = settings_.role == Role::kSource;
    std::vector<std::string> readable;
    if (source) readable = {"/etc", "/run/systemd/resolve", "/lib", "/usr/lib", "/lib64"};
    VF_ASSIGN(const bool confined, confine_process(volume_, !source, readable));
    logger_->log(base::LogLevel::kInfo,
                 confined ? "confined to the volume by landlock" : "no landlock in this kernel");
    return {};
  }

  // A transfer is worth more than its metrics: an address in use is a warning.
  void start_endpoint() {
    if (!settings_.metrics) return;
    auto endpoint = mover::start_endpoint(*settings_.metrics, settings_.role, live_);
    if (!endpoint)
      return logger_->log(base::LogLevel::kWarn, "no metrics: " + endpoint.error().message());
    endpoint_ = *std::move(endpoint);
    logger_->log(base::LogLevel::kInfo, fmt::format("metrics on port {}", endpoint_->port()));
  }

  Error sync_timeout_error() const {
    const auto seconds = std::chrono::duration<double>(settings_.sync_timeout).count();
    return {Code::kTimeout, 0,
            fmt::format("the run took longer than VOLFERRY_SYNC_TIMEOUT, {} s", seconds)};
  }

  Outcome outcome(const Summary& summary) const {
    Outcome outcome{.role = settings_.role,
                    .volume_mode = own_.volume_mode,
                    .summary = summary,
                    .peer = peer_.get(),
                    .sessions = peer_.sessions(),
                    .log_tail = tail_.text()};
    const int code = summary.exit_code();
    // A destination's transfer is the source's.
    const bool theirs = settings_.role == Role::kDestination && result_name(code) != "failed";
    const Identity& of = theirs ? outcome.peer.value_or(Identity{}) : own_;
    outcome.seq = of.seq;
    outcome.attempt = of.attempt;
    outcome.final_sync_id = of.final_sync_id;
    return outcome;
  }

  // The error line, the summary, the result; in this order also where they go to one log.
  int finish(const Summary& summary) {
    const Outcome end = outcome(summary);
    if (termination_log_) {
      if (const Status written = termination_log_->write(result_json(end)); !written)
        termination_problem_ = written.error().message();
    }
    if (!termination_problem_.empty())
      console_.err("volferry: warning: " + escape_line(termination_problem_));
    const int code = summary.exit_code();
    output_->finish(summary, code);
    console_.out_text(closing_(end));
    console_.flush_out();
    return code;
  }

  // On the guard's thread, while others still run.
  void end_overdue(bool timed_out) {
    if (finishing_.exchange(true)) return;
    Error why{Code::kTerminated, 0, "terminated; what was waited for could not be interrupted"};
    if (stop_.load() == exit_code(Code::kInterrupted)) why.code = Code::kInterrupted;
    if (timed_out) why = sync_timeout_error();
    _exit(finish(failed_summary(why)));
  }

  Console& console_;
  const bool json_;
  const Closing closing_;
  const Environment environment_;
  Settings settings_;
  std::optional<Error> refused_;
  std::optional<TerminationLog> termination_log_;
  std::string termination_problem_;
  LogTail tail_;
  std::unique_ptr<base::Logger> plain_logger_;
  std::unique_ptr<TailLogger> logger_;
  std::unique_ptr<Output> output_;
  std::string volume_;
  Identity own_;
  std::vector<transport::PskEntry> keys_;
  LiveState live_{[] { return std::chrono::steady_clock::now(); }};
  PeerRecord peer_;
  StopFlag stop_{0};
  std::atomic<bool> finishing_{false};
  std::unique_ptr<HttpServer> endpoint_;  // ends first: it reads the above
};

}  // namespace

int run_mover(MoverJob job, Console& console) { return Mover(std::move(job), console).run(); }

}  // namespace volferry::cli::mover
