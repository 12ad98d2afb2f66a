// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/log.h"

namespace volferry::cli::mover {

// The first bytes of `text`, at most `max_bytes`, cut between characters.
std::string_view cut_text(std::string_view text, std::size_t max_bytes);

// The last lines that were logged, for a result that outlives the log. Thread-safe.
class LogTail {
 public:
  static constexpr std::size_t kMaxBytes = 1024;

  // One line, escaped already; a long one is cut.
  void add(std::string_view line);
  // Whole lines, oldest first, line feeds between them; at most kMaxBytes.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;  // with a line feed each
};

// Passes lines on, and keeps those of `level` or above in the tail. Both outlive it.
class TailLogger final : public base::Logger {
 public:
  TailLogger(base::Logger& next, base::LogLevel level, LogTail& tail)
      : next_(next), level_(level), tail_(tail) {}
  void log(base::LogLevel level, std::string_view line) override;

 private:
  base::Logger& next_;
  const base::LogLevel level_;
  LogTail& tail_;
};

}  // namespace volferry::cli::mover
