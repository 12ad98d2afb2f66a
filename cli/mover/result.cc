// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/escape.h"
#include "cli/json_output.h"
#include "cli/mover/conflict.h"
#include "cli/mover/log_tail.h"
#include "cli/report.h"

#include "engine/transport/wire/limits.h"

namespace volferry::cli::mover {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
// Exit codes after which the same run would end the same way.
constexpr int kPermanent[] = {2, 11, 12, 20, 23, 30};

std::string_view reason_of(const Error& error) {
  const std::string_view refusal = reason_of_refusal(error.context);
  return refusal.empty() ? reason(error.code) : refusal;
}

// What the exit code stands for. Both signals interrupt.
std::string_view reason_of(const Summary& summary) {
  const int code = summary.exit_code();
  if (code == 0) return "";
  if (code == exit_code(Code::kTerminated)) return reason(Code::kInterrupted);
  if (summary.fatal) return reason_of(*summary.fatal);
  for (const Code each : {Code::kItemFailed, Code::kSourceChanged, Code::kDifferences})
    if (code == exit_code(each)) return reason(each);
  return reason(Code::kInternal);
}

std::string first_item(const Summary& summary, bool changed) {
  const auto item = std::ranges::find_if(
      summary.errors, [&](const ItemError& each) { return each.changed == changed; });
  return item == summary.errors.end() ? "" : ", the first: " + item_text(*item);
}

std::string shown(const std::string& text) {
  return std::string(cut_text(escape_line(text), kMaxMessage));
}

std::string message_of(const Error& error) {
  std::string text = error_line(error);
  constexpr std::string_view kLead = "volferry: error: ";
  if (text.starts_with(kLead)) text.erase(0, kLead.size());
  return shown(text);
}

// One line for a person.
std::string message_of(const Summary& summary) {
  std::string text;
  if (summary.fatal) return message_of(*summary.fatal);
  if (summary.error_count > 0) {
    text = fmt::format("{} items failed{}", summary.error_count, first_item(summary, false));
  } else if (summary.differences > 0) {
    text = fmt::format("{} differences found", summary.differences);
  } else if (summary.changed_count > 0) {
    text = fmt::format("{} items vanished or changed while read{}", summary.changed_count,
                       first_item(summary, true));
  }
  return shown(text);
}

Json fields(const Outcome& outcome) {
  const Summary& summary = outcome.summary;
  const int code = summary.exit_code();
  return {{"event", "result"},
          {"version", kVersion},
          {"role", role_name(outcome.role)},
          {"result", result_name(code)},
          {"exit_code", code},
          {"reason", reason_of(summary)},
          {"retryable", may_retry(code)},
          {"message", message_of(summary)},
          {"seq", outcome.seq},
          {"attempt", outcome.attempt},
          {"final_sync_id", outcome.final_sync_id},
          {"files_total", summary.files_total},
          {"files_transferred", summary.files_transferred},
          {"bytes_total", summary.bytes_total},
          {"literal_bytes", summary.literal_bytes},
          {"matched_bytes", summary.matched_bytes},
          {"zero_bytes", summary.zero_bytes},
          {"wire_sent", summary.wire_sent},
          {"wire_received", summary.wire_received},
          {"elapsed_s", summary.elapsed_seconds},
          {"error_count", summary.error_count},
          {"owner_skipped", summary.owner_skipped},
          {"sessions", outcome.sessions},
          {"engine_version", VOLFERRY_VERSION},
          {"protocol", fmt::format("{}.{}", wire::kVersionMajor, wire::kVersionMinor)},
          {"token", token_of_refusal(summary.fatal ? summary.fatal->context : "")},
          {"peer", outcome.peer ? Json::parse(identity_json(*outcome.peer)) : Json(nullptr)},
          {"log_tail", cut_text(outcome.log_tail, LogTail::kMaxBytes)}};
}

// Shortens the field until the line fits or nothing of it is left.
void shorten(Json& event, const char* name) {
  while (true) {
    const std::size_t length = event.dump().size();
    std::string text = event[name].get<std::string>();
    if (length <= kMaxResult || text.empty()) return;
    // A character of the text takes one byte of the line or more.
    const std::size_t excess = std::min(length - kMaxResult, text.size());
    // The end of the log tells more than its beginning; of a message it is the other way round.
    if (std::string_view(name) == "log_tail") {
      const std::size_t line = text.find('\n', excess);
      text = line == std::string::npos ? "" : text.substr(line + 1);
    } else {
      text = cut_text(text, text.size() - excess);
    }
    event[name] = text;
  }
}

}  // namespace

bool may_retry(int exit_code) {
  if (exit_code == 0 || exit_code == volferry::exit_code(Code::kSourceChanged)) return false;
  return std::ranges::find(kPermanent, exit_code) == std::end(kPermanent);
}

std::string result_json(const Outcome& outcome) {
  Json event = fields(outcome);
  shorten(event, "log_tail");
  shorten(event, "message");
  return event.dump();
}

std::string refusal_json(const Error& error) {
  return Json{{"event", "refusal"},
              {"version", kVersion},
              {"reason", reason_of(error)},
              {"token", token_of_refusal(error.context)},
              {"message", message_of(error)}}
      .dump();
}

}  // namespace volferry::cli::mover
