// SPDX-License-Identifier: Apache-2.0
#include "cli/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/escape.h"
#include "cli/units.h"

namespace volferry::cli {

namespace {

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

// Bytes that had to move: over the wire in the direction of the data, or, locally, written.
std::uint64_t moved_bytes(const Summary& summary, const Work& work) {
  if (!work.remote) return summary.literal_bytes;
  return std::max(summary.wire_sent, summary.wire_received);
}

// Rounded down, so that 100 % means that nothing moved; empty where nothing was saved.
std::string saved(std::uint64_t moved, std::uint64_t total) {
  if (moved >= total) return {};
  const auto percent = static_cast<unsigned>(
      100.0 * (1.0 - static_cast<double>(moved) / static_cast<double>(total)));
  return fmt::format(" ({} % saved)", percent);
}

std::string seconds(double value) { return fmt::format("{:.{}f} s", value, value < 10 ? 2 : 1); }

std::string exact_bytes(std::uint64_t bytes) {
  return fmt::format("{} ({})", format_count(bytes), format_bytes(bytes));
}

class Table {
 public:
  void row(std::string_view name, std::string_view text) {
    text_ += fmt::format("{:<17}{}\n", name, text);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string summary_line(const Summary& summary, const Work& work) {
  const std::string volume =
      fmt::format("{}, {}", plural(summary.files_total, "file"), format_bytes(summary.bytes_total));
  if (work.kind == CommandKind::kVerify) {
    if (summary.differences == 0)
      return fmt::format("no differences: {} compared in {}", volume,
                         seconds(summary.elapsed_seconds));
    return fmt::format("{}: {} compared in {}", plural(summary.differences, "difference"), volume,
                       seconds(summary.elapsed_seconds));
  }
  if (work.dry_run)
    return fmt::format("dry run: {} of {} would be transferred, {} deleted",
                       format_count(summary.files_transferred), volume,
                       format_count(summary.files_deleted));
  const std::uint64_t moved = moved_bytes(summary, work);
  const char* verb = "wrote";
  if (work.remote) verb = summary.wire_sent >= summary.wire_received ? "sent" : "received";
  std::string line =
      fmt::format("{}; {} {} in {}{}", volume, verb, format_bytes(moved),
                  seconds(summary.elapsed_seconds), saved(moved, summary.bytes_total));
  if (summary.files_deleted > 0)
    line += fmt::format(", {} deleted", format_count(summary.files_deleted));
  if (summary.error_count > 0) line += fmt::format(", {}", plural(summary.error_count, "error"));
  return line;
}

std::string itemize_line(const ItemChangeEvent& event) {
  std::string line = fmt::format("{:<11} {}", event.code, escape_bytes(event.path));
  if (!event.link_target.empty())
    line += (event.code.starts_with('h') ? " => " : " -> ") + escape_bytes(event.link_target);
  return line;
}

std::string stats_table(const Summary& summary, const Work& work, const PhaseTimes& phases) {
  Table table;
  table.row(
      "files",
      fmt::format("{} ({} transferred, {} deleted)", format_count(summary.files_total),
                  format_count(summary.files_transferred), format_count(summary.files_deleted)));
  table.row("directories", format_count(summary.dirs_total));
  table.row("bytes", exact_bytes(summary.bytes_total));
  table.row("  literal", exact_bytes(summary.literal_bytes));
  table.row("  matched", exact_bytes(summary.matched_bytes));
  table.row("  zero", exact_bytes(summary.zero_bytes));
  if (work.remote) {
    table.row("wire sent", exact_bytes(summary.wire_sent));
    table.row("wire received", exact_bytes(summary.wire_received));
    table.row("connections",
              fmt::format("{} ({})", summary.streams, plural(summary.reconnects, "reconnect")));
  }
  table.row("time", seconds(summary.elapsed_seconds));
  table.row("  listing", seconds(summary.list_seconds));
  for (const auto& [phase, time] : phases)
    table.row(fmt::format("  {}", phase_name(phase)), seconds(time));
  if (summary.elapsed_seconds > 0)
    table.row("speed",
              format_rate(static_cast<double>(summary.bytes_total) / summary.elapsed_seconds));
  if (!summary.io.empty()) table.row("io", summary.io);
  table.row("peak buffers", exact_bytes(summary.peak_buffers));
  if (work.kind == CommandKind::kVerify || summary.differences > 0)
    table.row("differences", format_count(summary.differences));
  if (summary.owner_skipped > 0) table.row("owner not set", format_count(summary.owner_skipped));
  table.row("changed", format_count(summary.changed_count));
  table.row("errors", format_count(summary.error_count));
  return table.take();
}

}  // namespace volferry::cli
