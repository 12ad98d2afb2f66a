// SPDX-License-Identifier: Apache-2.0
// Small codings that several messages share. For the .cc files of this folder only.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/transport/wire/messages.h"

namespace volferry::wire {

// File sizes and offsets fit off_t, so that no later addition of two of them overflows 64 unsigned
// bits.
inline constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint64_t kMaxRangeIndex = kMaxOffset / kRangeBytes;
inline constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::int64_t kMaxErrno = 4095;  // the kernel's own bound

inline std::uint32_t get_u32(base::ByteReader& in) {
  return static_cast<std::uint32_t>(in.count(kMaxU32));
}

// A byte that must be one of the enumerators 0 .. `last`.
template <typename Enum>
Enum get_enum(base::ByteReader& in, Enum last) {
  const std::uint8_t value = in.u8();
  if (value > static_cast<std::uint8_t>(last)) in.fail();
  return in.ok() ? static_cast<Enum>(value) : Enum{};
}

inline bool get_bool(base::ByteReader& in) {
  const std::uint8_t value = in.u8();
  if (value > 1) in.fail();
  return value == 1;
}

// A count of items that take at least `item_bytes` each of what is left: no frame can announce more
// than it carries.
inline std::size_t get_count(base::ByteReader& in, std::size_t limit, std::size_t item_bytes) {
  const std::uint64_t count = in.count(limit);
  if (count * item_bytes > in.remaining()) in.fail();
  return in.ok() ? static_cast<std::size_t>(count) : 0;
}

// Texts are cut at the limit, since a longer one would end the session; they are for people, or
// refused elsewhere.
inline void put_text(base::ByteWriter& out, std::string_view text, std::size_t limit) {
  out.text(text.substr(0, limit));
}

inline std::int32_t get_errno(base::ByteReader& in) {
  const std::uint64_t value = in.count(kMaxErrno);
  return static_cast<std::int32_t>(value);
}
inline void put_errno(base::ByteWriter& out, std::int32_t value) {
  out.varint(value < 0 || value > kMaxErrno ? 0 : static_cast<std::uint64_t>(value));
}

inline void put_bytes(base::ByteWriter& out, const std::vector<std::uint8_t>& bytes) {
  out.blob({bytes.data(), bytes.size()});
}
inline std::vector<std::uint8_t> get_bytes(base::ByteReader& in, std::size_t limit) {
  const base::Bytes bytes = in.blob(limit);
  return {bytes.begin(), bytes.end()};
}

// Length 0, 16 or 32 as one byte, then the digest.
void put_digest(base::ByteWriter& out, const Digest& digest);
Digest get_digest(base::ByteReader& in);

// What a directory entry adds to its metadata; both bits travel in the first byte of the metadata.
struct EntryBits {
  bool no_descend = false;
  bool unreadable = false;
};
void put_meta(base::ByteWriter& out, const EntryMeta& meta, EntryBits bits = {});
// `bits` is null where an entry's bits are not allowed.
void get_meta(base::ByteReader& in, EntryMeta& meta, EntryBits* bits);

// The shortest metadata: type byte, mode, uid, gid, size, mtime_s, mtime_ns.
inline constexpr std::size_t kMinMetaBytes = 7;

}  // namespace volferry::wire
