// SPDX-License-Identifier: Apache-2.0
// Between the types of io, delta and the wire, which know nothing of each other.
#pragma once

#include "engine/delta/instruction.h"
#include "engine/delta/strong_hash.h"
#include "engine/io/metadata.h"
#include "engine/io/xattrs.h"
#include "engine/transport/wire/messages.h"

namespace volferry::session {

wire::EntryType to_wire(io::FileType type);
wire::EntryMeta to_wire(const io::Metadata& meta);
std::vector<wire::Xattr> to_wire(io::XattrList list);
io::XattrList from_wire(const std::vector<wire::Xattr>& list);
wire::Digest to_wire(const delta::Digest& digest);
bool equal(const wire::Digest& wire_digest, const delta::Digest& digest);
std::vector<wire::RangeOp> to_wire(const std::vector<delta::Instruction>& instructions);

inline io::Timestamp mtime_of(const wire::EntryMeta& meta) { return {meta.mtime_s, meta.mtime_ns}; }
// Device numbers travel as major << 32 | minor, independent of the kernel's packing.
std::uint64_t rdev_to_wire(std::uint64_t rdev);
std::uint64_t rdev_from_wire(std::uint64_t rdev);

}  // namespace volferry::session
