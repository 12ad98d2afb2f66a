// SPDX-License-Identifier: Apache-2.0
#include "cli/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace volferry::cli {

namespace {

constexpr std::string_view kPrefixes = "kmgtp";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::unexpected<Error> not_a_size(std::string_view text) {
  return fail_with(Code::kUsage,
                   fmt::format("'{}' is not a size such as 4096, 50M or 1.5Gi", text));
}

// The factor that a suffix stands for, or 0.
std::uint64_t suffix_factor(std::string_view suffix) {
  if (!suffix.empty() && lower(suffix.back()) == 'b') suffix.remove_suffix(1);
  if (suffix.empty()) return 1;
  const std::size_t power = kPrefixes.find(lower(suffix[0]));
  if (power == std::string_view::npos) return 0;
  const bool binary = suffix.size() == 2 && lower(suffix[1]) == 'i';
  if (suffix.size() > 1 && !binary) return 0;
  std::uint64_t factor = 1;
  for (std::size_t i = 0; i <= power; ++i) factor *= binary ? 1024 : 1000;
  return factor;
}

// A plain decimal number: digits, at most one point, nothing else (no sign, exponent, `inf`).
Result<double> parse_decimal(std::string_view text) {
  double value = 0;
  if (text.find_first_not_of("0123456789.") != std::string_view::npos || text.empty())
    return fail_with(Code::kUsage, "not a number");
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail_with(Code::kUsage, "not a number");
  return value;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const std::size_t split = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, split);
  const std::uint64_t factor = suffix_factor(text.substr(split));
  if (factor == 0) return not_a_size(text);

  // Whole numbers are kept exact: a double has only 53 bits.
  if (number.find('.') == std::string_view::npos) {
    std::uint64_t whole = 0;
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), whole);
    if (error == std::errc::invalid_argument) return not_a_size(text);
    if (error != std::errc{} || __builtin_mul_overflow(whole, factor, &bytes))
      return fail_with(Code::kUsage, fmt::format("'{}' is too large", text));
    return bytes;
  }
  const Result<double> value = parse_decimal(number);
  if (!value) return not_a_size(text);
  const double bytes = *value * static_cast<double>(factor);
  if (bytes >= 18446744073709551615.0)
    return fail_with(Code::kUsage, fmt::format("'{}' is too large", text));
  return static_cast<std::uint64_t>(std::floor(bytes + 0.5));
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  const Result<std::uint64_t> rate = parse_size(size);
  if (rate) return *rate;
  return fail_with(Code::kUsage,
                   fmt::format("'{}' is not a rate in bytes a second such as 50M or 1.5Gi", text));
}

Result<std::chrono::milliseconds> parse_seconds(std::string_view text) {
  const Result<double> value = parse_decimal(text);
  if (!value || *value > 1e6)
    return fail_with(Code::kUsage, fmt::format("'{}' is not a number of seconds", text));
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*value * 1000.0)));
}

Result<unsigned> parse_count(std::string_view text, unsigned low, unsigned high) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return fail_with(Code::kUsage,
                     fmt::format("'{}' is not a whole number from {} to {}", text, low, high));
  return value;
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {"B",  "kB", "MB", "GB",
                                                             "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 would print as 1000: the next unit takes it.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string format_rate(double bytes_per_second) {
  return format_bytes(static_cast<std::uint64_t>(std::max(0.0, bytes_per_second))) + "/s";
}

std::string format_clock(std::chrono::seconds duration) {
  const auto total = duration.count();
  const auto hours = total / 3600;
  if (hours > 99) return "> 99 h";
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string format_count(std::uint64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace volferry::cli
