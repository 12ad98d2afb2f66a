// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cli/console.h"

namespace volferry::cli {

// A console on two temporary files, whose contents can be looked at while it is in use.
class CapturedConsole {
 public:
  explicit CapturedConsole(bool terminal = false)
      : out_(std::tmpfile()), err_(std::tmpfile()), console_({out_, err_, terminal, terminal}) {}
  ~CapturedConsole() {
    std::fclose(out_);
    std::fclose(err_);
  }
  CapturedConsole(const CapturedConsole&) = delete;
  CapturedConsole& operator=(const CapturedConsole&) = delete;

  Console& console() { return console_; }
  std::string out() const { return content(out_); }
  std::string err() const { return content(err_); }

 private:
  static std::string content(std::FILE* file) {
    std::fflush(file);
    std::string text(1 << 20, '\0');
    const ssize_t length = pread(fileno(file), text.data(), text.size(), 0);
    text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return text;
  }

  std::FILE* out_;
  std::FILE* err_;
  Console console_;
};

}  // namespace volferry::cli
