// SPDX-License-Identifier: Apache-2.0
// Quantities as people write and read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace volferry::cli {

// A byte count: a decimal number with an optional suffix K, M, G, T, P (powers of 1000) or Ki, Mi,
// Gi, Ti, Pi (powers of 1024), either case, optionally followed by `B`: `50M`, `1.5Gi`, `100k`,
// `4096`. Errors: kUsage, the text says why.
Result<std::uint64_t> parse_size(std::string_view text);

// Bytes a second: a size, optionally followed by `/s`. `0` means no limit.
Result<std::uint64_t> parse_rate(std::string_view text);

// Seconds with optional decimals, `0` .. `1000000`.
Result<std::chrono::milliseconds> parse_seconds(std::string_view text);

// A whole number within [low, high].
Result<unsigned> parse_count(std::string_view text, unsigned low, unsigned high);

// Three significant digits in powers of 1000: `0 B`, `999 B`, `4.50 GB`.
std::string format_bytes(std::uint64_t bytes);
// `512 MB/s`.
std::string format_rate(double bytes_per_second);
// `0:07`, `12:34`, `1:02:03`, and `> 99 h` past that.
std::string format_clock(std::chrono::seconds duration);
// Digits in groups of three: `1,234,567`.
std::string format_count(std::uint64_t value);

}  // namespace volferry::cli
