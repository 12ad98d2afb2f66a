// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

namespace {

constexpr std::uint64_t kAllFlags = (std::uint64_t{kFlagProgress} << 1) - 1;
constexpr std::int64_t kMinLevel = -100;
constexpr std::int64_t kMaxLevel = 22;
constexpr std::uint64_t kMaxExitCode = 255;

// Relative, and without a component that leads elsewhere; doubled or trailing slashes are harmless.
bool valid_subpath(std::string_view path) {
  if (path.starts_with('/')) return false;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && !valid_name(part)) return false;
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return true;
}

void put_finish(base::ByteWriter& out, const Finish& message) {
  out.varint(message.exit_code);
  put_text(out, message.text, kMaxText);
  for (const std::uint64_t value :
       {message.files_total, message.files_transferred, message.files_deleted, message.dirs_total,
        message.bytes_total, message.literal_bytes, message.matched_bytes, message.zero_bytes,
        message.owner_skipped, message.differences}) {
    out.varint(value);
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const Start& message) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(message.direction));
  out.varint(message.flags);
  out.u8(static_cast<std::uint8_t>(message.hash));
  put_bytes(out, message.hash_secret);
  out.u8(static_cast<std::uint8_t>(message.compress));
  out.svarint(message.compress_level);
  out.varint(message.bandwidth_limit);
  out.text(message.subpath);
  out.u8(static_cast<std::uint8_t>(message.root_kind));
  out.varint(message.root_size);
  out.varint(message.filters.size());
  for (const FilterRule& rule : message.filters) {
    out.u8(rule.include ? 1 : 0);
    out.text(rule.pattern);
  }
  return out.take();
}

Status decode(base::Bytes head, Start& message) {
  base::ByteReader in(head);
  message = {};
  message.direction = get_enum(in, Direction::kPull);
  message.flags = in.count(kAllFlags);
  message.hash = get_enum(in, HashKind::kSha256);
  message.hash_secret = get_bytes(in, kMaxSecret);
  message.compress = get_enum(in, CompressMode::kZstd);
  const std::int64_t level = in.svarint();
  if (level < kMinLevel || level > kMaxLevel) in.fail();
  message.compress_level = in.ok() ? static_cast<std::int32_t>(level) : 0;
  message.bandwidth_limit = in.varint();
  message.subpath = in.text(kMaxText);
  if (!valid_subpath(message.subpath)) in.fail();
  message.root_kind = get_enum(in, RootKind::kBlockDevice);
  message.root_size = in.count(kMaxOffset);
  const std::size_t filters = get_count(in, kMaxFilters, 2);
  message.filters.reserve(filters);
  for (std::size_t i = 0; i < filters && in.ok(); ++i) {
    const bool include = get_bool(in);
    message.filters.push_back({include, in.text(kMaxText)});
  }
  return in.finish("Start");
}

std::vector<std::uint8_t> encode(const StartAck& message) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(message.root_kind));
  out.varint(message.root_size);
  return out.take();
}

Status decode(base::Bytes head, StartAck& message) {
  base::ByteReader in(head);
  message.root_kind = get_enum(in, RootKind::kBlockDevice);
  message.root_size = in.count(kMaxOffset);
  return in.finish("StartAck");
}

std::vector<std::uint8_t> encode(const BeginPass& message) {
  base::ByteWriter out;
  out.varint(message.pass);
  out.u8(static_cast<std::uint8_t>(message.kind));
  return out.take();
}

Status decode(base::Bytes head, BeginPass& message) {
  base::ByteReader in(head);
  message.pass = get_u32(in);
  message.kind = get_enum(in, PassKind::kVerify);
  return in.finish("BeginPass");
}

std::vector<std::uint8_t> encode(const ListEnd& message) {
  base::ByteWriter out;
  out.varint(message.pass);
  out.varint(message.read_errors);
  out.varint(message.files);
  out.varint(message.dirs);
  out.varint(message.bytes);
  return out.take();
}

Status decode(base::Bytes head, ListEnd& message) {
  base::ByteReader in(head);
  message.pass = get_u32(in);
  message.read_errors = in.varint();
  message.files = in.varint();
  message.dirs = in.varint();
  message.bytes = in.varint();
  return in.finish("ListEnd");
}

std::vector<std::uint8_t> encode(const Finish& message) {
  base::ByteWriter out;
  put_finish(out, message);
  return out.take();
}

Status decode(base::Bytes head, Finish& message) {
  base::ByteReader in(head);
  message.exit_code = static_cast<std::uint32_t>(in.count(kMaxExitCode));
  message.text = in.text(kMaxText);
  for (std::uint64_t* value :
       {&message.files_total, &message.files_transferred, &message.files_deleted,
        &message.dirs_total, &message.bytes_total, &message.literal_bytes, &message.matched_bytes,
        &message.zero_bytes, &message.owner_skipped, &message.differences}) {
    *value = in.varint();
  }
  return in.finish("Finish");
}

}  // namespace volferry::wire
