// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/delta/strong_hash.h"
#include "engine/io/xattrs.h"
#include "engine/options.h"
#include "engine/session/filter.h"
#include "engine/transport/wire/messages.h"

namespace volferry::session {

// What both ends of one session have agreed on, as each end uses it.
struct VolumeOptions {
  bool delete_extra = false;
  bool dry_run = false;
  bool itemize = false;
  bool checksum = false;
  bool one_file_system = false;
  bool inplace = false;
  bool owner = true;
  bool perms = true;
  bool times = true;
  bool hardlinks = true;
  bool devices = true;
  bool verify_only = false;
  bool verify_after = false;
  bool durable = true;
  // This end's affairs alone:
  bool keep_root = false;           // the root's own attributes stay
  bool spare_capabilities = false;  // security.capability stays where it may not be set
  io::XattrPolicy xattrs;
  Filter filter;

  // True where the destination is not to be changed at all.
  bool read_only() const { return dry_run || verify_only; }
};

VolumeOptions volume_options(const wire::Start& start);
// The Start flags that stand for these options.
std::uint64_t start_flags(const SyncOptions& options, bool verify_only);

inline delta::HashKind hash_kind(wire::HashKind kind) {
  return kind == wire::HashKind::kSha256 ? delta::HashKind::kSha256 : delta::HashKind::kXxh3;
}

}  // namespace volferry::session
