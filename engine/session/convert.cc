// SPDX-License-Identifier: Apache-2.0
#include "engine/session/convert.h"

#include <sys/sysmacros.h>

#include <algorithm>

namespace volferry::session {

wire::EntryType to_wire(io::FileType type) {
  switch (type) {
    case io::FileType::kFile:
      return wire::EntryType::kFile;
    case io::FileType::kDirectory:
      return wire::EntryType::kDirectory;
    case io::FileType::kSymlink:
      return wire::EntryType::kSymlink;
    case io::FileType::kFifo:
      return wire::EntryType::kFifo;
    case io::FileType::kSocket:
      return wire::EntryType::kSocket;
    case io::FileType::kCharDevice:
      return wire::EntryType::kCharDevice;
    case io::FileType::kBlockDevice:
      return wire::EntryType::kBlockDevice;
  }
  return wire::EntryType::kFile;
}

wire::EntryMeta to_wire(const io::Metadata& meta) {
  wire::EntryMeta out;
  out.type = to_wire(meta.type);
  out.mode = meta.mode;
  out.uid = meta.uid;
  out.gid = meta.gid;
  out.size = meta.type == io::FileType::kFile ? meta.size : 0;
  out.mtime_s = meta.mtime.seconds;
  out.mtime_ns = meta.mtime.nanoseconds;
  if (meta.type == io::FileType::kCharDevice || meta.type == io::FileType::kBlockDevice) {
    out.rdev = rdev_to_wire(meta.rdev);
  }
  return out;
}

std::vector<wire::Xattr> to_wire(io::XattrList list) {
  std::vector<wire::Xattr> out;
  out.reserve(list.size());
  for (io::Xattr& attr : list) out.push_back({std::move(attr.name), std::move(attr.value)});
  return out;
}

io::XattrList from_wire(const std::vector<wire::Xattr>& list) {
  io::XattrList out;
  out.reserve(list.size());
  for (const wire::Xattr& attr : list) out.push_back({attr.name, attr.value});
  return out;
}

wire::Digest to_wire(const delta::Digest& digest) {
  const base::Bytes view = digest.view();
  return {view.begin(), view.end()};
}

bool equal(const wire::Digest& wire_digest, const delta::Digest& digest) {
  const base::Bytes view = digest.view();
  return std::ranges::equal(wire_digest, view);
}

std::vector<wire::RangeOp> to_wire(const std::vector<delta::Instruction>& instructions) {
  std::vector<wire::RangeOp> ops;
  ops.reserve(instructions.size());
  for (const delta::Instruction& step : instructions) {
    wire::OpKind kind = wire::OpKind::kLiteral;
    switch (step.kind) {
      case delta::InstructionKind::kLiteral:
        kind = wire::OpKind::kLiteral;
        break;
      case delta::InstructionKind::kCopy:
        kind = wire::OpKind::kCopy;
        break;
      case delta::InstructionKind::kSame:
        kind = wire::OpKind::kSame;
        break;
      case delta::InstructionKind::kZero:
        kind = wire::OpKind::kZero;
        break;
    }
    ops.push_back({kind, step.length, step.basis_offset});
  }
  return ops;
}

std::uint64_t rdev_to_wire(std::uint64_t rdev) {
  return (static_cast<std::uint64_t>(major(rdev)) << 32) | minor(rdev);
}

std::uint64_t rdev_from_wire(std::uint64_t rdev) {
  return makedev(static_cast<unsigned>(rdev >> 32), static_cast<unsigned>(rdev & 0xffffffff));
}

}  // namespace volferry::session
