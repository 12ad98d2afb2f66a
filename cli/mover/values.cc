// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "cli/escape.h"
#include "cli/filter_rules.h"
#include "cli/option_sets.h"
#include "cli/units.h"

namespace volferry::cli::mover {

namespace {

constexpr std::size_t kMaxEpoch = 128;
constexpr std::chrono::milliseconds kMaxDuration = std::chrono::hours(24 * 365);

// The error for a text that is none of what it may be.
std::unexpected<Error> expected(std::string_view text, std::string_view what) {
  return fail_with(Code::kUsage, fmt::format("'{}' is not {}", escape_bytes(text), what));
}

// Calls `take` with each piece between the separators.
template <typename Take>
Status each_piece(std::string_view text, char separator, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    VF_TRY(take(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

struct Unit {
  std::string_view name;
  double milliseconds;
};
// Longer names first: `ms` is not `m` followed by something.
constexpr std::array<Unit, 4> kUnits = {
    {{"ms", 1.0}, {"h", 3'600'000.0}, {"m", 60'000.0}, {"s", 1000.0}}};

}  // namespace

bool plain_text(std::string_view text, std::size_t max_bytes) {
  return text.size() <= max_bytes && escape_line(text) == text;
}

Result<std::chrono::milliseconds> parse_seconds_s(std::string_view text) {
  std::string_view number = text;
  if (number.ends_with('s')) number.remove_suffix(1);
  auto seconds = parse_seconds(number);
  if (!seconds) return expected(text, "a number of seconds");
  return *seconds;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (auto seconds = parse_seconds_s(text)) return *seconds;
  double total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    double value = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || rest[0] == '-') return expected(text, "a duration such as 90s, 5m");
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto* unit =
        std::ranges::find_if(kUnits, [&](const Unit& each) { return rest.starts_with(each.name); });
    if (unit == kUnits.end()) return expected(text, "a duration such as 90s, 5m or 2h");
    total += value * unit->milliseconds;
    rest.remove_prefix(unit->name.size());
  }
  if (text.empty() || !(total <= static_cast<double>(kMaxDuration.count())))
    return expected(text, "a duration of at most a year");
  return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return expected(text, "true or false");
}

Result<std::uint64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return expected(text, "a whole number below 2^63");
  return static_cast<std::uint64_t>(value);
}

Result<std::string> parse_epoch(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool shape = dash != std::string_view::npos && dash + 1 < text.size() &&
                     parse_number(text.substr(0, dash)).has_value();
  const bool nonce = std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
  if (!shape || !nonce || text.size() > kMaxEpoch) return expected(text, "COUNTER-NONCE");
  return std::string(text);
}

Result<base::LogLevel> parse_log_level(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, base::LogLevel>, 4> kLevels = {
      {{"error", base::LogLevel::kError},
       {"warn", base::LogLevel::kWarn},
       {"info", base::LogLevel::kInfo},
       {"debug", base::LogLevel::kDebug}}};
  for (const auto& [name, level] : kLevels)
    if (name == text) return level;
  return expected(text, "one of error, warn, info, debug");
}

Status set_compression(std::string_view text, SyncOptions& options) {
  if (text == "none") return set_compress(options, "off");
  if (text == "off" || !set_compress(options, text))
    return expected(text, "one of auto, none, zstd, zstd:1 to zstd:19");
  return {};
}

Status set_preserve(std::string_view text, SyncOptions& options) {
  const std::array<std::pair<std::string_view, bool*>, 7> kinds = {
      {{"owner", &options.owner},
       {"perms", &options.perms},
       {"times", &options.times},
       {"xattrs", &options.xattrs},
       {"acls", &options.acls},
       {"hardlinks", &options.hardlinks},
       {"devices", &options.devices}}};
  for (const auto& [name, flag] : kinds) *flag = false;
  return each_piece(text, ',', [&](std::string_view word) -> Status {
    if (word == "sparse") return {};
    for (const auto& [name, flag] : kinds) {
      if (name == word) {
        *flag = true;
        return {};
      }
    }
    return expected(word, "one of owner, perms, times, xattrs, acls, hardlinks, devices, sparse");
  });
}

Status set_exclude(std::string_view text, SyncOptions& options) {
  return each_piece(text, '\n', [&](std::string_view line) -> Status {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line[0] == '#' || line[0] == ';') return {};
    VF_ASSIGN(FilterRule rule, parse_filter_rule(line, false));
    options.filters.push_back(std::move(rule));
    return {};
  });
}

}  // namespace volferry::cli::mover
