// SPDX-License-Identifier: Apache-2.0
// Standard output and error, shared by reports, log lines and the progress bar so that none tears
// another.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace volferry::cli {

struct ConsoleStreams {
  std::FILE* out = nullptr;
  std::FILE* err = nullptr;
  bool out_terminal = false;
  bool err_terminal = false;
};

// Thread-safe. A status line is the last, unfinished line of a terminal; every other output removes
// it first.
class Console {
 public:
  // The streams outlive the console.
  explicit Console(const ConsoleStreams& streams) : streams_(streams) {}
  ~Console() { clear_status(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  // The process's own streams.
  static ConsoleStreams standard();

  // One line; the line end is added.
  void out(std::string_view line);
  void err(std::string_view line);
  // Text as it is, on standard output.
  void out_text(std::string_view text);
  void flush_out();

  // Shows or replaces the status line on standard error. Only for terminals.
  void set_status(std::string_view line);
  void clear_status();
  // Columns of the terminal on standard error; 80 where it does not tell.
  std::size_t columns() const;

  bool out_terminal() const { return streams_.out_terminal; }
  bool err_terminal() const { return streams_.err_terminal; }
  // False once standard output could not be written (closed pipe, full disk). Flushes first.
  bool out_ok();

 private:
  void clear_locked();

  const ConsoleStreams streams_;
  std::mutex mutex_;
  bool status_shown_ = false;
  bool out_failed_ = false;
};

}  // namespace volferry::cli
