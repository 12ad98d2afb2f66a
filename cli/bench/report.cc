// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/escape.h"
#include "cli/units.h"

namespace volferry::cli::bench {

namespace {

std::string rate_text(const Row& row, double rate) {
  if (rate <= 0) return "-";
  if (row.unit == "bytes") return format_rate(rate);
  return fmt::format("{} {}/s", format_count(static_cast<std::uint64_t>(rate)), row.unit);
}

std::string share_text(const Row& row) {
  if (row.rate <= 0 || row.limit <= 0) return "-";
  return fmt::format("{:.0f} %", 100 * row.rate / row.limit);
}

// A stage that every byte of a transfer passes. Stages with the same words are alternatives: the
// fastest counts.
struct Stage {
  std::string_view prefix;
  std::string_view words;
};
constexpr Stage kStages[] = {
    {"read, direct", "reading the disk"},
    {"write, direct", "writing the disk"},
    {"hash xxh3", "hashing"},
    {"loopback TLS", "TLS and the network stack"},
};

double stage_rate(const std::vector<Row>& rows, std::string_view prefix) {
  double best = 0;
  for (const Row& row : rows)
    if (row.name.starts_with(prefix)) best = std::max(best, row.rate);
  return best;
}

}  // namespace

std::string table(const std::vector<Row>& rows) {
  std::string out = fmt::format("{:<30}{:>17}{:>17}{:>9}  {}\n", "what", "measured", "limit",
                                "share", "limit is");
  for (const Row& row : rows) {
    std::string last = row.limit > 0 ? row.limit_name : "";
    if (!row.note.empty()) last += (last.empty() ? "" : "; ") + escape_line(row.note);
    out += fmt::format("{:<30}{:>17}{:>17}{:>9}  {}\n", row.name, rate_text(row, row.rate),
                       rate_text(row, row.limit), share_text(row), last);
  }
  return out;
}

std::string row_json(const Row& row) {
  const auto number = [](double rate) {
    return rate > 0 ? nlohmann::ordered_json(static_cast<std::uint64_t>(rate))
                    : nlohmann::ordered_json(nullptr);
  };
  const nlohmann::ordered_json json = {
      {"event", "measurement"},       {"name", row.name},           {"unit", row.unit + "/s"},
      {"rate", number(row.rate)},     {"limit", number(row.limit)}, {"limit_name", row.limit_name},
      {"note", escape_line(row.note)}};
  return json.dump();
}

std::string bottleneck(const std::vector<Row>& rows) {
  const Stage* slowest = nullptr;
  double slowest_rate = 0;
  for (const Stage& stage : kStages) {
    const double rate = stage_rate(rows, stage.prefix);
    if (rate > 0 && (slowest == nullptr || rate < slowest_rate)) {
      slowest = &stage;
      slowest_rate = rate;
    }
  }
  if (slowest == nullptr) return "likely bottleneck: unknown, too little could be measured";
  // A link of that many bits a second would be the bottleneck in its place.
  return fmt::format(
      "likely bottleneck of a large transfer: {} ({}); a network below {:.1f} Gbit/s would be "
      "slower "
      "still",
      slowest->words, format_rate(slowest_rate), slowest_rate * 8 / 1e9);
}

}  // namespace volferry::cli::bench
