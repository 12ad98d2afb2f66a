// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "engine/base/check.h"
#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

namespace {

constexpr std::uint8_t kAllRequestFlags = kRequestCompareOnly | kRequestRolling | kRequestOrdered;

// How a RangeSig is coded: its kind and the digest's length in one byte.
enum class SigCode : std::uint8_t { kNone = 0, kZero = 1, kDigest16 = 2, kDigest32 = 3 };

void put_sig(base::ByteWriter& out, const RangeSig& sig) {
  switch (sig.kind) {
    case RangeSigKind::kNone:
      out.u8(static_cast<std::uint8_t>(SigCode::kNone));
      return;
    case RangeSigKind::kZero:
      out.u8(static_cast<std::uint8_t>(SigCode::kZero));
      return;
    case RangeSigKind::kDigest:
      VF_CHECK(sig.digest.size() == 16 || sig.digest.size() == 32, "digest length");
      out.u8(static_cast<std::uint8_t>(sig.digest.size() == 16 ? SigCode::kDigest16
                                                               : SigCode::kDigest32));
      out.raw({sig.digest.data(), sig.digest.size()});
      return;
  }
}

RangeSig get_sig(base::ByteReader& in) {
  const SigCode code = get_enum(in, SigCode::kDigest32);
  if (code == SigCode::kNone) return {};
  if (code == SigCode::kZero) return {RangeSigKind::kZero, {}};
  const base::Bytes bytes = in.raw(code == SigCode::kDigest16 ? 16 : 32);
  return {RangeSigKind::kDigest, {bytes.begin(), bytes.end()}};
}

}  // namespace

std::vector<std::uint8_t> encode(const FileRequest& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.dir);
  out.varint(message.index);
  out.u8(static_cast<std::uint8_t>(message.kind));
  out.u8(message.flags);
  out.varint(message.size);
  out.varint(message.basis_size);
  put_digest(out, message.digest);
  out.svarint(message.mtime_s);
  out.varint(message.mtime_ns);
  return out.take();
}

Status decode(base::Bytes head, FileRequest& message) {
  base::ByteReader in(head);
  message.req = get_u32(in);
  message.dir = get_u32(in);
  message.index = get_u32(in);
  message.kind = get_enum(in, RequestKind::kSegments);
  message.flags = in.u8();
  message.size = in.count(kMaxOffset);
  message.basis_size = in.count(kMaxOffset);
  message.digest = get_digest(in);
  message.mtime_s = in.svarint();
  message.mtime_ns = static_cast<std::uint32_t>(in.count(999'999'999));
  if ((message.flags & ~kAllRequestFlags) != 0) in.fail();
  if (message.kind == RequestKind::kDigest && message.digest.empty()) in.fail();
  return in.finish("FileRequest");
}

std::vector<std::uint8_t> encode(const SegmentRequest& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.segment);
  out.varint(message.ranges.size());
  for (const RangeSig& sig : message.ranges) put_sig(out, sig);
  return out.take();
}

Status decode(base::Bytes head, SegmentRequest& message) {
  base::ByteReader in(head);
  message = {};
  message.req = get_u32(in);
  message.segment = get_u32(in);
  const std::size_t count = get_count(in, kRangesPerSegment, 1);
  message.ranges.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) message.ranges.push_back(get_sig(in));
  return in.finish("SegmentRequest");
}

std::vector<std::uint8_t> encode(const FineRequest& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.ranges.size());
  for (const std::uint64_t range : message.ranges) out.varint(range);
  return out.take();
}

Status decode(base::Bytes head, FineRequest& message) {
  base::ByteReader in(head);
  message = {};
  message.req = get_u32(in);
  const std::size_t count = get_count(in, kMaxFineRanges, 1);
  message.ranges.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    message.ranges.push_back(in.count(kMaxRangeIndex));
  }
  return in.finish("FineRequest");
}

std::vector<std::uint8_t> encode(const FineHashes& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.range);
  out.varint(message.blocks.size());
  for (const std::uint32_t block : message.blocks) out.u32(block);
  return out.take();
}

Status decode(base::Bytes head, FineHashes& message) {
  base::ByteReader in(head);
  message = {};
  message.req = get_u32(in);
  message.range = in.count(kMaxRangeIndex);
  const std::size_t count = get_count(in, kBlocksPerRange, sizeof(std::uint32_t));
  message.blocks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) message.blocks.push_back(in.u32());
  return in.finish("FineHashes");
}

std::vector<std::uint8_t> encode(const RollingRequest& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.offset);
  out.varint(message.length);
  out.varint(message.block_bytes);
  return out.take();
}

Status decode(base::Bytes head, RollingRequest& message) {
  base::ByteReader in(head);
  message.req = get_u32(in);
  message.offset = in.count(kMaxOffset);
  message.length = in.count(kMaxRollingBytes);
  message.block_bytes = static_cast<std::uint32_t>(in.count(kMaxRollingBlock));
  const bool sized =
      message.block_bytes >= kMinRollingBlock && std::has_single_bit(message.block_bytes);
  if (!sized || message.offset % message.block_bytes != 0 ||
      message.offset > kMaxOffset - message.length) {
    in.fail();
  }
  return in.finish("RollingRequest");
}

std::vector<std::uint8_t> encode(const RollingSignature& message) {
  VF_CHECK(message.weak.size() == message.strong.size(), "a weak and a strong hash each block");
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.first_block);
  out.u8(message.last ? 1 : 0);
  out.varint(message.weak.size());
  for (const std::uint32_t weak : message.weak) out.u32(weak);
  for (const std::uint64_t strong : message.strong) out.u64(strong);
  return out.take();
}

Status decode(base::Bytes head, RollingSignature& message) {
  base::ByteReader in(head);
  message = {};
  message.req = get_u32(in);
  message.first_block = in.count(kMaxRollingBytes / kMinRollingBlock);
  message.last = get_bool(in);
  const std::size_t count =
      get_count(in, kMaxRollingBlocks, sizeof(std::uint32_t) + sizeof(std::uint64_t));
  message.weak.reserve(count);
  message.strong.reserve(count);
  for (std::size_t i = 0; i < count; ++i) message.weak.push_back(in.u32());
  for (std::size_t i = 0; i < count; ++i) message.strong.push_back(in.u64());
  return in.finish("RollingSignature");
}

std::vector<std::uint8_t> encode(const RangeRetry& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.range);
  return out.take();
}

Status decode(base::Bytes head, RangeRetry& message) {
  base::ByteReader in(head);
  message.req = get_u32(in);
  message.range = in.count(kMaxRangeIndex);
  return in.finish("RangeRetry");
}

std::vector<std::uint8_t> encode(const FileCancel& message) {
  base::ByteWriter out;
  out.varint(message.req);
  return out.take();
}

Status decode(base::Bytes head, FileCancel& message) {
  base::ByteReader in(head);
  message.req = get_u32(in);
  return in.finish("FileCancel");
}

}  // namespace volferry::wire
