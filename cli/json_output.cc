// SPDX-License-Identifier: Apache-2.0
// Output for programs: NDJSON events on standard output, and nothing else there.
#include "cli/json_output.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/escape.h"
#include "cli/output.h"
#include "cli/report.h"

#include "engine/transport/wire/limits.h"

namespace volferry::cli {

namespace {

using Json = nlohmann::ordered_json;

// Strings are valid UTF-8 after escaping, so dumping never throws.
std::string line_of(const Json& event) { return event.dump(-1, ' ', false); }

Json error_fields(const ItemError& error) {
  Json fields = {{"path", escape_bytes(error.path)},
                 {"errno", error.os_errno},
                 {"what", escape_line(error.what)}};
  if (error.changed) fields["changed"] = true;
  return fields;
}

Json with_event(const char* name, const Json& fields) {
  Json event = {{"event", name}};
  event.update(fields);
  return event;
}

std::string_view command_name(CommandKind kind) {
  switch (kind) {
    case CommandKind::kSync:
      return "sync";
    case CommandKind::kVerify:
      return "verify";
    case CommandKind::kServe:
      return "serve";
    case CommandKind::kMoverSource:
    case CommandKind::kMoverDestination:
      return "mover";
  }
  return "";
}

bool is_mover(CommandKind kind) {
  return kind == CommandKind::kMoverSource || kind == CommandKind::kMoverDestination;
}

class JsonOutput : public Output {
 public:
  JsonOutput(Console& console, const OutputArguments& arguments, Work work, Clock clock)
      : console_(console),
        arguments_(arguments),
        work_(std::move(work)),
        clock_(std::move(clock)) {}

  void start() override {
    Json event = {{"event", "start"}, {"command", command_name(work_.kind)}};
    if (work_.kind == CommandKind::kServe) {
      event["root"] = escape_bytes(work_.source);
    } else if (is_mover(work_.kind)) {
      event["role"] = work_.kind == CommandKind::kMoverSource ? "source" : "destination";
      event["volume"] = escape_bytes(work_.source);
    } else {
      event["source"] = escape_bytes(work_.source);
      event["destination"] = escape_bytes(work_.destination);
      event["dry_run"] = work_.dry_run;
    }
    event["protocol"] = {{"major", wire::kVersionMajor}, {"minor", wire::kVersionMinor}};
    emit(event, true);
  }

  void listening(const std::string& address) override {
    emit({{"event", "listening"}, {"address", address}}, true);
  }

  void on_change(const ItemChangeEvent& change) override {
    if (!arguments_.itemize) return;
    Json event = {{"event", "item"}, {"code", change.code}, {"path", escape_bytes(change.path)}};
    if (!change.link_target.empty()) event["target"] = escape_bytes(change.link_target);
    emit(event, false);
  }

  void on_error(const ItemError& error) override {
    if (errors_++ < Summary::kMaxErrors) console_.err(item_error_line(error));
    emit(with_event("error", error_fields(error)), true);
  }

  void on_warning(const ItemError& warning) override {
    console_.err(warning_line(warning));
    emit(with_event("warning", error_fields(warning)), true);
  }

  void on_difference(const DifferenceEvent& difference) override {
    emit({{"event", "difference"},
          {"path", escape_bytes(difference.path)},
          {"kinds", difference.kinds}},
         false);
  }

  void on_progress(const ProgressSnapshot& snapshot) override {
    if (arguments_.progress == When::kOff) return;
    const TimePoint now = clock_();
    const bool new_phase = snapshot.phase != meter_.snapshot().phase;
    meter_.update(snapshot, now);
    if (!new_phase && emitted_ && now - *emitted_ < arguments_.progress_interval) return;
    emitted_ = now;
    console_.out(progress_json(meter_));
    console_.flush_out();
  }

  void finish(const Summary& summary, int exit_code) override {
    if (summary.fatal && summary.fatal->code != Code::kDifferences)
      console_.err(error_line(*summary.fatal));
    console_.out(summary_json(summary, exit_code));
    console_.flush_out();
  }

 private:
  // Items come in great numbers and wait in the stream's buffer; what a reader waits for goes out
  // at once.
  void emit(const Json& event, bool flush) {
    console_.out(line_of(event));
    if (flush) console_.flush_out();
  }

  Console& console_;
  const OutputArguments arguments_;
  const Work work_;
  Clock clock_;
  std::uint64_t errors_ = 0;
  ProgressMeter meter_;
  std::optional<TimePoint> emitted_;
};

}  // namespace

std::string result_name(int exit_code) {
  if (exit_code == 0) return "ok";
  return exit_code == 3 || exit_code == 4 ? "partial" : "failed";
}

std::string progress_json(const ProgressMeter& meter) {
  const ProgressSnapshot& now = meter.snapshot();
  const auto left = meter.remaining();
  return line_of({{"event", "progress"},
                  {"phase", phase_name(now.phase)},
                  {"total_known", now.total_known},
                  {"files_done", now.files_done},
                  {"files_total", now.files_total},
                  {"bytes_done", now.bytes_done},
                  {"bytes_total", now.bytes_total},
                  {"bytes_per_s", static_cast<std::uint64_t>(meter.bytes_per_second())},
                  {"eta_s", left ? Json(left->count()) : Json(nullptr)}});
}

std::string summary_json(const Summary& summary, int exit_code) {
  Json event = {{"event", "summary"},
                {"result", result_name(exit_code)},
                {"exit_code", exit_code},
                {"files_total", summary.files_total},
                {"files_transferred", summary.files_transferred},
                {"files_deleted", summary.files_deleted},
                {"dirs_total", summary.dirs_total},
                {"bytes_total", summary.bytes_total},
                {"literal_bytes", summary.literal_bytes},
                {"matched_bytes", summary.matched_bytes},
                {"zero_bytes", summary.zero_bytes},
                {"wire_sent", summary.wire_sent},
                {"wire_received", summary.wire_received},
                {"elapsed_s", summary.elapsed_seconds},
                {"list_s", summary.list_seconds},
                {"io", summary.io},
                {"streams", summary.streams},
                {"reconnects", summary.reconnects},
                {"owner_skipped", summary.owner_skipped},
                {"differences", summary.differences},
                {"peak_buffers", summary.peak_buffers},
                {"changed_count", summary.changed_count},
                {"error_count", summary.error_count}};
  if (summary.fatal)
    event["fatal"] = {{"reason", reason(summary.fatal->code)},
                      {"errno", summary.fatal->os_errno},
                      {"message", escape_line(summary.fatal->message())}};
  event["errors"] = Json::array();
  for (const ItemError& error : summary.errors) event["errors"].push_back(error_fields(error));
  return line_of(event);
}

std::unique_ptr<Output> make_json_output(Console& console, const OutputArguments& arguments,
                                         Work work, Clock clock) {
  return std::make_unique<JsonOutput>(console, arguments, std::move(work), std::move(clock));
}

}  // namespace volferry::cli
