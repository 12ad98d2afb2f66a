// SPDX-License-Identifier: Apache-2.0
// What a sync or verify is asked to do. Part of the engine's public face: the command line maps
// onto it one to one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace volferry {

enum class HashChoice : std::uint8_t { kXxh3, kSha256 };
enum class CompressChoice : std::uint8_t { kAuto, kOff, kZstd };
enum class IoChoice : std::uint8_t { kAuto, kUring, kThreads };
enum class DirectChoice : std::uint8_t { kAuto, kOn, kOff };

// Whether files of equal size and time may be taken for equal, or are compared as by --checksum.
enum class PeerTrust : std::uint8_t { kTimes, kContentOnly };

// Judges the other end by the identity tuple of its handshake, before anything is written. An error
// refuses the session; both ends then end with its code. The receiving end's trust counts. Called
// once for each session, on one of the engine's threads.
using PeerCheck = std::function<Result<PeerTrust>(const std::vector<std::uint8_t>& identity)>;

// One rsync-style pattern; the first rule that matches a path decides.
struct FilterRule {
  bool include = false;
  std::string pattern;
};

struct SyncOptions {
  bool delete_extra = false;
  bool dry_run = false;
  bool itemize = false;
  bool checksum = false;  // compare content although size and mtime agree
  bool one_file_system = false;
  bool inplace = false;
  bool owner = true;
  bool perms = true;
  bool times = true;
  bool xattrs = true;
  bool acls = true;
  bool hardlinks = true;
  bool devices = true;
  bool verify = false;  // after the sync, compare everything
  bool durable = true;
  std::vector<FilterRule> filters;

  HashChoice hash = HashChoice::kXxh3;
  CompressChoice compress = CompressChoice::kAuto;
  int compress_level = 0;                     // with kZstd: 1..19; 0: the default
  std::uint64_t bandwidth_limit = 0;          // bytes a second; 0: none
  unsigned streams = 0;                       // connections; 0: chosen
  unsigned threads = 0;                       // workers; 0: one a core, at most 8
  std::uint64_t memory_bytes = 512ull << 20;  // bound on buffers and tables of this process
  IoChoice io = IoChoice::kAuto;
  DirectChoice direct = DirectChoice::kAuto;

  std::chrono::milliseconds timeout{60'000};  // of an idle connection
  std::chrono::milliseconds connect_timeout{10'000};
  unsigned retries = 3;                // reconnects after a lost connection
  std::vector<std::uint8_t> identity;  // opaque tuple for the handshake
  PeerCheck check_peer;                // none: every peer is fine
};

}  // namespace volferry
