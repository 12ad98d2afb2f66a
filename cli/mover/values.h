// SPDX-License-Identifier: Apache-2.0
// The values of the mover's variables. Errors are kUsage and say what was expected; the caller adds
// the variable's name.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/log.h"
#include "engine/options.h"

namespace volferry::cli::mover {

// Text that may be repeated in logs and JSON: valid UTF-8 without control characters, at most
// `max_bytes` long.
bool plain_text(std::string_view text, std::size_t max_bytes);

// Seconds as `60`, `2.5`, `60s`.
Result<std::chrono::milliseconds> parse_seconds_s(std::string_view text);
// Seconds as above, or a sum of parts as Go prints it: `1h30m`, `5m0s`, `1.5h`, `250ms`.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// `true` or `false`.
Result<bool> parse_bool(std::string_view text);
// Decimal, up to 2^63 - 1: what other programs' integers hold.
Result<std::uint64_t> parse_number(std::string_view text);
// `COUNTER-NONCE`.
Result<std::string> parse_epoch(std::string_view text);
Result<base::LogLevel> parse_log_level(std::string_view text);

// `auto`, `none`, `zstd`, `zstd:LEVEL`.
Status set_compression(std::string_view text, SyncOptions& options);
// A comma list of what is kept; everything else is not.
Status set_preserve(std::string_view text, SyncOptions& options);
// rsync-style patterns, one a line.
Status set_exclude(std::string_view text, SyncOptions& options);

}  // namespace volferry::cli::mover
