// SPDX-License-Identifier: Apache-2.0
#include "cli/escape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>

namespace volferry::cli {
namespace {

// The inverse, written from the documented rule alone.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (text[i + 1] == '\\') {
      out += '\\';
      ++i;
    } else {
      out += static_cast<char>(std::strtol(text.substr(i + 2, 2).c_str(), nullptr, 16));
      i += 3;
    }
  }
  return out;
}

TEST(EscapeBytes, KeepsPrintableUtf8) {
  EXPECT_EQ(escape_bytes("plain file -> x"), "plain file -> x");
  EXPECT_EQ(escape_bytes("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8b"),
            "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8b");
}

TEST(EscapeBytes, EscapesControlsAndBackslash) {
  EXPECT_EQ(escape_bytes("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(escape_bytes("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(escape_bytes("a\\b"), "a\\\\b");
  EXPECT_EQ(escape_bytes(std::string_view("\0", 1)), "\\x00");
}

TEST(EscapeBytes, EscapesTerminalControlsBeyondAscii) {
  EXPECT_EQ(escape_bytes("\xc2\x9b"
                         "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(escape_bytes("\xc2\xa0"), "\xc2\xa0");
}

TEST(EscapeBytes, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(escape_bytes("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escape_bytes("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(escape_bytes("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escape_bytes("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "overlong";
  EXPECT_EQ(escape_bytes("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escape_bytes("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past U+10FFFF";
  EXPECT_EQ(escape_bytes("\xe2\x82"), "\\xe2\\x82") << "cut off";
  EXPECT_EQ(escape_bytes("\xe2\x82z"), "\\xe2\\x82z");
}

TEST(EscapeBytes, CanBeUndone) {
  std::mt19937 random(4711);
  // Bytes that meet in interesting ways, more often than chance would have them.
  static constexpr char kBytes[] = "\\xn\n\x1b\xc2\x80\xe2\x82\xac\xf0\x9f\x90\x8b\xff";
  for (int round = 0; round < 5000; ++round) {
    std::string bytes;
    for (unsigned i = random() % 12; i > 0; --i) bytes += kBytes[random() % (sizeof kBytes - 1)];
    const std::string text = escape_bytes(bytes);
    EXPECT_EQ(unescape(text), bytes) << text;
    for (const char c : text) EXPECT_FALSE(static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f);
  }
}

TEST(EscapeLine, LeavesBackslashesAndIsIdempotent) {
  EXPECT_EQ(escape_line("open a\\x0ab\n"), "open a\\x0ab\\x0a");
  EXPECT_EQ(escape_line(escape_line("a\n\xff\\")), escape_line("a\n\xff\\"));
}

}  // namespace
}  // namespace volferry::cli
