// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

namespace {

constexpr std::uint8_t kFirst = 1;
constexpr std::uint8_t kLast = 2;
constexpr std::uint8_t kImage = 4;
constexpr std::uint8_t kComplete = 8;

bool valid_entry(const DirList& list, const Entry& entry) {
  if (list.image) {
    return entry.name.empty() && list.entries.empty() &&
           (entry.meta.type == EntryType::kFile || entry.meta.type == EntryType::kBlockDevice);
  }
  if (!valid_name(entry.name)) return false;
  return list.entries.empty() || list.entries.back().name < entry.name;
}

void get_entries(base::ByteReader& in, DirList& list) {
  const std::size_t count = get_count(in, kMaxListEntries, 1 + kMinMetaBytes);
  if (list.first_index + std::uint64_t{count} > kMaxU32) in.fail();
  list.entries.reserve(in.ok() ? count : 0);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Entry entry;
    entry.name = in.text(kMaxName);
    EntryBits bits;
    get_meta(in, entry.meta, &bits);
    entry.no_descend = bits.no_descend;
    entry.unreadable = bits.unreadable;
    if (!in.ok()) return;
    if (!valid_entry(list, entry)) return in.fail();
    list.entries.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const DirList& message) {
  base::ByteWriter out;
  out.varint(message.dir);
  out.varint(message.parent);
  out.text(message.name);
  out.u8(static_cast<std::uint8_t>((message.first ? kFirst : 0) | (message.last ? kLast : 0) |
                                   (message.image ? kImage : 0) |
                                   (message.complete ? kComplete : 0)));
  if (message.first) put_meta(out, message.meta);
  out.varint(message.first_index);
  out.varint(message.entries.size());
  for (const Entry& entry : message.entries) {
    out.text(entry.name);
    put_meta(out, entry.meta, {entry.no_descend, entry.unreadable});
  }
  return out.take();
}

Status decode(base::Bytes head, DirList& message) {
  base::ByteReader in(head);
  message = {};
  message.dir = get_u32(in);
  message.parent = get_u32(in);
  message.name = in.text(kMaxName);
  const std::uint8_t flags = in.u8();
  message.first = (flags & kFirst) != 0;
  message.last = (flags & kLast) != 0;
  message.image = (flags & kImage) != 0;
  message.complete = (flags & kComplete) != 0;
  const bool known = (flags & ~(kFirst | kLast | kImage | kComplete)) == 0;
  const bool named = message.dir == 0 ? message.name.empty() : valid_name(message.name);
  if (!known || !named || (message.image && message.dir != 0)) in.fail();
  if (message.first) get_meta(in, message.meta, nullptr);
  message.first_index = get_u32(in);
  get_entries(in, message);
  return in.finish("DirList");
}

std::vector<std::uint8_t> encode(const DirRelease& message) {
  base::ByteWriter out;
  out.varint(message.dir);
  return out.take();
}

Status decode(base::Bytes head, DirRelease& message) {
  base::ByteReader in(head);
  message.dir = get_u32(in);
  return in.finish("DirRelease");
}

}  // namespace volferry::wire
