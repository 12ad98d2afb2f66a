// SPDX-License-Identifier: Apache-2.0
#include "cli/escape.h"

#include <cstdint>

namespace volferry::cli {

namespace {

// Length of the valid UTF-8 sequence that `text` starts with (Unicode 15, table 3-7: no overlong
// forms, no surrogates, nothing past U+10FFFF), or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const std::uint8_t first = byte(0);
  const std::uint8_t second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (first == 0xe0 && second < 0xa0) return 0;
    if (first == 0xed && second > 0x9f) return 0;
    return tail(1) && tail(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (first == 0xf0 && second < 0x90) return 0;
    if (first == 0xf4 && second > 0x8f) return 0;
    return tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// U+0080..U+009F: terminals act on these as they do on ESC sequences.
bool is_c1_control(std::string_view sequence) {
  return sequence.size() == 2 && static_cast<std::uint8_t>(sequence[0]) == 0xc2 &&
         static_cast<std::uint8_t>(sequence[1]) < 0xa0;
}

bool is_ascii_control(char c) { return static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f; }

void append_hex(std::string& out, std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto value = static_cast<std::uint8_t>(c);
    out += "\\x";
    out += kDigits[value >> 4];
    out += kDigits[value & 15];
  }
}

std::string escape(std::string_view text, std::string_view backslash) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view piece = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_c1_control(piece) || (length == 1 && is_ascii_control(piece[0]))) {
      append_hex(out, piece);
    } else if (piece == "\\") {
      out += backslash;
    } else {
      out += piece;
    }
    text.remove_prefix(piece.size());
  }
  return out;
}

}  // namespace

std::string escape_bytes(std::string_view bytes) { return escape(bytes, "\\\\"); }

std::string escape_line(std::string_view text) { return escape(text, "\\"); }

}  // namespace volferry::cli
