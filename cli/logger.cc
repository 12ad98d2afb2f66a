// SPDX-License-Identifier: Apache-2.0
#include "cli/logger.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <string>

#include "cli/escape.h"

namespace volferry::cli {

namespace {

// Hands finished lines to the console, which keeps them apart from the progress bar.
class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    while (text.ends_with('\n')) text.remove_suffix(1);
    console_.err(escape_line(text));
  }
  void flush_() override {}

 private:
  Console& console_;
};

spdlog::level::level_enum spdlog_level(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::kError:
      return spdlog::level::err;
    case base::LogLevel::kWarn:
      return spdlog::level::warn;
    case base::LogLevel::kInfo:
      return spdlog::level::info;
    case base::LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::debug;
}

class SpdlogLogger : public base::Logger {
 public:
  SpdlogLogger(Console& console, spdlog::level::level_enum level)
      : logger_("volferry", std::make_shared<ConsoleSink>(console)) {
    logger_.set_level(level);
    logger_.set_pattern("volferry: %l: %v");
  }
  void log(base::LogLevel level, std::string_view line) override {
    // As an argument, because a line may hold braces.
    logger_.log(spdlog_level(level), "{}", line);
  }

 private:
  spdlog::logger logger_;
};

}  // namespace

std::unique_ptr<base::Logger> make_logger(Console& console, const OutputArguments& output) {
  spdlog::level::level_enum level = spdlog::level::warn;
  if (output.quiet) level = spdlog::level::err;
  if (output.verbose == 1) level = spdlog::level::info;
  if (output.verbose > 1) level = spdlog::level::debug;
  return std::make_unique<SpdlogLogger>(console, level);
}

}  // namespace volferry::cli
