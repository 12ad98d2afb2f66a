// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace volferry::cli {

namespace {
constexpr std::size_t kDefaultColumns = 80;
constexpr std::string_view kEraseLine = "\r\x1b[K";

bool write_all(std::FILE* stream, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size();
}
}  // namespace

ConsoleStreams Console::standard() {
  return {stdout, stderr, isatty(STDOUT_FILENO) == 1, isatty(STDERR_FILENO) == 1};
}

void Console::out(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (streams_.out_terminal) clear_locked();
  const bool ok = write_all(streams_.out, line) && write_all(streams_.out, "\n");
  out_failed_ = out_failed_ || !ok;
}

void Console::err(std::string_view line) {
  const std::lock_guard lock(mutex_);
  clear_locked();
  // One write, so that lines of several processes (ssh's far end) do not mix.
  write_all(streams_.err, fmt::format("{}\n", line));
  std::fflush(streams_.err);
}

void Console::out_text(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (streams_.out_terminal) clear_locked();
  out_failed_ = !write_all(streams_.out, text) || out_failed_;
}

void Console::flush_out() {
  const std::lock_guard lock(mutex_);
  out_failed_ = std::fflush(streams_.out) != 0 || out_failed_;
}

void Console::set_status(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (!streams_.err_terminal) return;
  write_all(streams_.err, fmt::format("\r{}\x1b[K", line));
  std::fflush(streams_.err);
  status_shown_ = true;
}

void Console::clear_status() {
  const std::lock_guard lock(mutex_);
  clear_locked();
}

void Console::clear_locked() {
  if (!status_shown_) return;
  write_all(streams_.err, kEraseLine);
  std::fflush(streams_.err);
  status_shown_ = false;
}

std::size_t Console::columns() const {
  winsize size{};
  if (ioctl(fileno(streams_.err), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kDefaultColumns;
  return size.ws_col;
}

bool Console::out_ok() {
  flush_out();
  const std::lock_guard lock(mutex_);
  return !out_failed_;
}

}  // namespace volferry::cli
