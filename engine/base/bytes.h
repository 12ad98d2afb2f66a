// SPDX-License-Identifier: Apache-2.0
// Byte spans, and a bounds-checked little-endian reader and writer for everything that is stored or
// sent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace volferry::base {

using Bytes = std::span<const std::uint8_t>;
using MutBytes = std::span<std::uint8_t>;

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Appends values to a byte vector that it owns. Integers are little-endian; `varint` is LEB128 (at
// most 10 bytes).
class ByteWriter {
 public:
  void u8(std::uint8_t value) { out_.push_back(value); }
  void u16(std::uint16_t value) { fixed(value); }
  void u32(std::uint32_t value) { fixed(value); }
  void u64(std::uint64_t value) { fixed(value); }
  void varint(std::uint64_t value);
  // Zigzag-coded signed varint.
  void svarint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void raw(Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  // Varint length, then the bytes.
  void blob(Bytes bytes);
  void text(std::string_view value) { blob(as_bytes(value)); }

  std::size_t size() const { return out_.size(); }
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  template <typename T>
  void fixed(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::vector<std::uint8_t> out_;
};

// Reads from a span that outlives it. The first read past the end, or past a limit, makes the
// reader fail for good: later reads return zero values, and `finish` (or `ok`) tells. So a decoder
// reads all fields, then checks once, but must check `ok()` before it loops or allocates by a count
// that it has read.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : rest_(bytes) {}

  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint16_t u16() { return fixed<std::uint16_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::uint64_t varint();
  std::int64_t svarint() {
    const std::uint64_t raw = varint();
    return static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1);
  }
  // A varint that must not exceed `limit`.
  std::uint64_t count(std::uint64_t limit);
  Bytes raw(std::size_t length);
  // A blob of at most `limit` bytes; the span points into the reader's input.
  Bytes blob(std::size_t limit) { return raw(count(limit)); }
  std::string text(std::size_t limit) { return std::string(as_text(blob(limit))); }

  bool ok() const { return ok_; }
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  std::size_t remaining() const { return rest_.size(); }
  // The error `protocol` naming `what` unless every read succeeded and nothing is left over.
  Status finish(std::string_view what) const;

 private:
  template <typename T>
  T fixed() {
    if (rest_.size() < sizeof(T)) {
      fail();
      return 0;
    }
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(value | (static_cast<T>(rest_[i]) << (8 * i)));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  Bytes rest_;
  bool ok_ = true;
};

// Lower-case hexadecimal, and its reverse (empty result for odd length or another character).
std::string to_hex(Bytes bytes);
std::vector<std::uint8_t> from_hex(std::string_view text);

}  // namespace volferry::base
