// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/log_tail.h"

#include <cstdint>

#include "cli/escape.h"

namespace volferry::cli::mover {

std::string_view cut_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

void LogTail::add(std::string_view line) {
  const std::string_view kept = cut_text(line, kMaxBytes - 1);
  const std::lock_guard lock(mutex_);
  lines_.emplace_back(kept);
  bytes_ += kept.size() + 1;
  while (bytes_ > kMaxBytes) {
    bytes_ -= lines_.front().size() + 1;
    lines_.pop_front();
  }
}

std::string LogTail::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const std::string& line : lines_) out += (out.empty() ? "" : "\n") + line;
  return out;
}

void TailLogger::log(base::LogLevel level, std::string_view line) {
  next_.log(level, line);
  constexpr std::string_view kNames[] = {"error: ", "warning: ", "info: ", "debug: "};
  if (level > level_) return;
  tail_.add(std::string(kNames[static_cast<std::size_t>(level)]) + escape_line(line));
}

}  // namespace volferry::cli::mover
