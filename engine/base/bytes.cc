// SPDX-License-Identifier: Apache-2.0
#include "engine/base/bytes.h"

namespace volferry::base {

void ByteWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<std::uint8_t>(value));
}

void ByteWriter::blob(Bytes bytes) {
  varint(bytes.size());
  raw(bytes);
}

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8();
    if (!ok_) return 0;
    // The tenth byte holds one bit only.
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail();
  return 0;
}

std::uint64_t ByteReader::count(std::uint64_t limit) {
  const std::uint64_t value = varint();
  if (value <= limit) return value;
  fail();
  return 0;
}

Bytes ByteReader::raw(std::size_t length) {
  if (rest_.size() < length) {
    fail();
    return {};
  }
  const Bytes taken = rest_.first(length);
  rest_ = rest_.subspan(length);
  return taken;
}

Status ByteReader::finish(std::string_view what) const {
  if (!ok_) return fail_with(Code::kProtocol, "malformed " + std::string(what));
  if (!rest_.empty())
    return fail_with(Code::kProtocol, "trailing bytes after " + std::string(what));
  return {};
}

std::string to_hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

namespace {
int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
}  // namespace

std::vector<std::uint8_t> from_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  if (text.size() % 2 != 0) return bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit_value(text[i]);
    const int low = digit_value(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::uint8_t>(high * 16 + low));
  }
  return bytes;
}

}  // namespace volferry::base
