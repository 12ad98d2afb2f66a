// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

namespace {

// The first byte of metadata: the type in the low three bits, then what follows or holds.
constexpr std::uint8_t kTypeMask = 7;
constexpr std::uint8_t kHasXattrs = 8;
constexpr std::uint8_t kHasLinkGroup = 16;
constexpr std::uint8_t kNoDescend = 32;
constexpr std::uint8_t kUnreadable = 64;

constexpr std::uint64_t kMaxMode = 07777;
constexpr std::uint64_t kMaxNanoseconds = 999'999'999;

bool is_device(EntryType type) {
  return type == EntryType::kCharDevice || type == EntryType::kBlockDevice;
}

void put_xattrs(base::ByteWriter& out, const std::vector<Xattr>& xattrs) {
  out.varint(xattrs.size());
  for (const Xattr& xattr : xattrs) {
    out.text(xattr.name);
    out.text(xattr.value);
  }
}

void get_xattrs(base::ByteReader& in, std::vector<Xattr>& xattrs) {
  const std::size_t count = get_count(in, kMaxXattrs, 3);
  xattrs.reserve(count);
  std::size_t total = 0;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Xattr xattr{in.text(kMaxXattrName), in.text(kMaxXattrValue)};
    total += xattr.name.size() + xattr.value.size();
    const bool ascending = xattrs.empty() || xattrs.back().name < xattr.name;
    if (xattr.name.empty() || xattr.name.find('\0') != std::string::npos || !ascending ||
        total > kMaxXattrBytes) {
      in.fail();
    }
    xattrs.push_back(std::move(xattr));
  }
}

}  // namespace

void put_digest(base::ByteWriter& out, const Digest& digest) {
  out.u8(static_cast<std::uint8_t>(digest.size()));
  out.raw({digest.data(), digest.size()});
}

Digest get_digest(base::ByteReader& in) {
  const std::uint8_t length = in.u8();
  if (length != 0 && length != 16 && length != kMaxDigest) in.fail();
  const base::Bytes bytes = in.raw(in.ok() ? length : 0);
  return {bytes.begin(), bytes.end()};
}

void put_meta(base::ByteWriter& out, const EntryMeta& meta, EntryBits bits) {
  std::uint8_t first = static_cast<std::uint8_t>(meta.type);
  if (!meta.xattrs.empty()) first |= kHasXattrs;
  if (meta.hardlink_group != 0) first |= kHasLinkGroup;
  if (bits.no_descend) first |= kNoDescend;
  if (bits.unreadable) first |= kUnreadable;
  out.u8(first);
  out.varint(meta.mode);
  out.varint(meta.uid);
  out.varint(meta.gid);
  out.varint(meta.size);
  out.svarint(meta.mtime_s);
  out.varint(meta.mtime_ns);
  if (is_device(meta.type)) out.varint(meta.rdev);
  if (meta.type == EntryType::kSymlink) out.text(meta.link_target);
  if (meta.hardlink_group != 0) out.varint(meta.hardlink_group);
  if (!meta.xattrs.empty()) put_xattrs(out, meta.xattrs);
}

void get_meta(base::ByteReader& in, EntryMeta& meta, EntryBits* bits) {
  const std::uint8_t first = in.u8();
  const std::uint8_t type = first & kTypeMask;
  if (type > static_cast<std::uint8_t>(EntryType::kBlockDevice) || (first & 0x80) != 0) in.fail();
  if (bits == nullptr && (first & (kNoDescend | kUnreadable)) != 0) in.fail();
  if (!in.ok()) return;
  meta = {};
  meta.type = static_cast<EntryType>(type);
  if (bits != nullptr) *bits = {(first & kNoDescend) != 0, (first & kUnreadable) != 0};
  meta.mode = static_cast<std::uint16_t>(in.count(kMaxMode));
  meta.uid = get_u32(in);
  meta.gid = get_u32(in);
  meta.size = in.count(kMaxOffset);
  meta.mtime_s = in.svarint();
  meta.mtime_ns = static_cast<std::uint32_t>(in.count(kMaxNanoseconds));
  if (is_device(meta.type)) meta.rdev = in.varint();
  if (meta.type == EntryType::kSymlink) {
    meta.link_target = in.text(kMaxLinkTarget);
    if (meta.link_target.find('\0') != std::string::npos) in.fail();
  }
  if ((first & kHasLinkGroup) != 0) {
    meta.hardlink_group = in.varint();
    if (meta.hardlink_group == 0) in.fail();
  }
  if ((first & kHasXattrs) != 0) get_xattrs(in, meta.xattrs);
}

}  // namespace volferry::wire
