// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

namespace {

// An outcome's first byte: the result in the low three bits, then what follows.
constexpr std::uint8_t kResultMask = 7;
constexpr std::uint8_t kHasMeta = 8;
constexpr std::uint8_t kHasError = 16;
constexpr std::uint8_t kHasContent = 32;  // PackedFile only
constexpr std::uint8_t kSparse = 64;      // PackedFile only, with kHasContent

constexpr unsigned kOpKindBits = 3;

// The fields that PackedFile and FileEnd have in common.
template <typename Outcome>
void put_outcome(base::ByteWriter& out, const Outcome& outcome, std::uint8_t more) {
  std::uint8_t first = static_cast<std::uint8_t>(outcome.result) | more;
  const bool has_error = outcome.os_errno != 0 || !outcome.text.empty();
  if (outcome.has_meta) first |= kHasMeta;
  if (has_error) first |= kHasError;
  out.varint(outcome.req);
  out.u8(first);
  if (outcome.has_meta) put_meta(out, outcome.meta);
  if (has_error) {
    put_errno(out, outcome.os_errno);
    put_text(out, outcome.text, kMaxText);
  }
}

// Returns the first byte; fails the reader where it has bits outside `allowed`.
template <typename Outcome>
std::uint8_t get_outcome(base::ByteReader& in, Outcome& outcome, std::uint8_t allowed) {
  outcome.req = get_u32(in);
  const std::uint8_t first = in.u8();
  const std::uint8_t result = first & kResultMask;
  if (result > static_cast<std::uint8_t>(FileResult::kError)) in.fail();
  if ((first & ~(kResultMask | allowed)) != 0) in.fail();
  if (!in.ok()) return 0;
  outcome.result = static_cast<FileResult>(result);
  outcome.has_meta = (first & kHasMeta) != 0;
  if (outcome.has_meta) get_meta(in, outcome.meta, nullptr);
  if ((first & kHasError) != 0) {
    outcome.os_errno = get_errno(in);
    outcome.text = in.text(kMaxText);
  }
  return first;
}

void get_op(base::ByteReader& in, RangeOp& op) {
  const std::uint64_t coded = in.count((kRangeBytes << kOpKindBits) | 7);
  const std::uint64_t kind = coded & 7;
  op.length = static_cast<std::uint32_t>(coded >> kOpKindBits);
  if (kind > static_cast<std::uint64_t>(OpKind::kZero) || op.length == 0) return in.fail();
  op.kind = static_cast<OpKind>(kind);
  if (op.kind == OpKind::kCopy) op.basis_offset = in.count(kMaxOffset - kRangeBytes);
}

}  // namespace

std::vector<std::uint8_t> encode(const Pack& message) {
  base::ByteWriter out;
  out.u8(message.compressed ? 1 : 0);
  out.varint(message.raw_bytes);
  out.varint(message.files.size());
  for (const PackedFile& file : message.files) {
    const bool has_content = file.length != 0 || !file.digest.empty() || file.sparse;
    const std::uint8_t sparse = file.sparse ? kSparse : 0;
    put_outcome(out, file, has_content ? kHasContent | sparse : 0);
    if (!has_content) continue;
    put_digest(out, file.digest);
    out.varint(file.length);
  }
  return out.take();
}

Status decode(base::Bytes head, Pack& message) {
  base::ByteReader in(head);
  message = {};
  message.compressed = get_bool(in);
  message.raw_bytes = static_cast<std::uint32_t>(in.count(kMaxBody));
  const std::size_t count = get_count(in, kMaxPackFiles, 2);
  message.files.reserve(count);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    PackedFile& file = message.files.emplace_back();
    const std::uint8_t first = get_outcome(in, file, kHasMeta | kHasError | kHasContent | kSparse);
    file.sparse = (first & kSparse) != 0;
    if ((first & kHasContent) == 0) {
      if (file.sparse) in.fail();
      continue;
    }
    file.digest = get_digest(in);
    file.length = static_cast<std::uint32_t>(in.count(kMaxBody));
    total += file.length;
  }
  VF_TRY(in.finish("Pack"));
  if (total != message.raw_bytes) {
    return fail_with(Code::kProtocol, "Pack: the files' lengths do not add up to raw_bytes");
  }
  return {};
}

std::vector<std::uint8_t> encode(const RangeData& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.varint(message.range);
  out.u8(message.compressed ? 1 : 0);
  out.varint(message.raw_bytes);
  put_digest(out, message.digest);
  out.varint(message.ops.size());
  for (const RangeOp& op : message.ops) {
    out.varint((std::uint64_t{op.length} << kOpKindBits) | static_cast<std::uint64_t>(op.kind));
    if (op.kind == OpKind::kCopy) out.varint(op.basis_offset);
  }
  return out.take();
}

Status decode(base::Bytes head, RangeData& message) {
  base::ByteReader in(head);
  message = {};
  message.req = get_u32(in);
  message.range = in.count(kMaxRangeIndex);
  message.compressed = get_bool(in);
  message.raw_bytes = static_cast<std::uint32_t>(in.count(kMaxBody));
  message.digest = get_digest(in);
  const std::size_t count = get_count(in, kMaxOps, 1);
  message.ops.reserve(count);
  std::uint64_t total = 0;
  std::uint64_t literal = 0;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    RangeOp& op = message.ops.emplace_back();
    get_op(in, op);
    total += op.length;
    if (op.kind == OpKind::kLiteral) literal += op.length;
    if (total > kRangeBytes) in.fail();
  }
  VF_TRY(in.finish("RangeData"));
  if (literal != message.raw_bytes) {
    return fail_with(Code::kProtocol, "RangeData: the literals do not add up to raw_bytes");
  }
  return {};
}

std::vector<std::uint8_t> encode(const RangeRun& message) {
  base::ByteWriter out;
  out.varint(message.req);
  out.u8(static_cast<std::uint8_t>(message.kind));
  out.varint(message.first);
  out.varint(message.count);
  return out.take();
}

Status decode(base::Bytes head, RangeRun& message) {
  base::ByteReader in(head);
  message.req = get_u32(in);
  message.kind = get_enum(in, OpKind::kZero);
  message.first = in.count(kMaxRangeIndex);
  message.count = in.count(kMaxRangeIndex);
  if (message.kind == OpKind::kLiteral || message.kind == OpKind::kCopy) in.fail();
  if (message.count == 0 || message.first + message.count > kMaxRangeIndex) in.fail();
  return in.finish("RangeRun");
}

std::vector<std::uint8_t> encode(const FileEnd& message) {
  base::ByteWriter out;
  put_outcome(out, message, 0);
  return out.take();
}

Status decode(base::Bytes head, FileEnd& message) {
  base::ByteReader in(head);
  message = {};
  (void)get_outcome(in, message, kHasMeta | kHasError);
  return in.finish("FileEnd");
}

}  // namespace volferry::wire
