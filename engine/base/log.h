// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace volferry::base {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

// Where one-line events go. Handed in by the program; the engine has no default one. Thread-safe.
// Never keys, tokens or file contents.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(LogLevel level, std::string_view line) = 0;
};

// Drops everything.
class NullLogger : public Logger {
 public:
  void log(LogLevel /*level*/, std::string_view /*line*/) override {}
};

}  // namespace volferry::base
