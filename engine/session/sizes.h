// SPDX-License-Identifier: Apache-2.0
// The session's own tuning, beside the reason for each number. What both ends must agree on stands
// in wire/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/io/metadata.h"
#include "engine/transport/wire/limits.h"

namespace volferry::session {

// Files up to this travel whole, many to a frame; larger ones range by range. At 128 KiB a frame's
// own cost (about 60 bytes and one hand-over between threads) is below a thousandth of the data.
inline constexpr std::uint64_t kPackFileBytes = 128u << 10;
// A pack is sent when it holds this much: eight of the largest files, and a quarter of the
// receiver's slot unused at most.
inline constexpr std::uint64_t kPackFrameBytes = 512u << 10;
// A basis is worth comparing block by block from here on; below, the file travels whole.
inline constexpr std::uint64_t kDeltaFileBytes = 32u << 10;

// Whether a small file has holes: takes a block less than its size.
inline bool is_sparse(const io::Metadata& meta) {
  return meta.blocks * 512 + wire::kBlockBytes <= meta.size;
}

// How often a file that moved while it was read is read again.
inline constexpr int kChangeRetries = 3;

// A larger file is refused, since a peer may tell any size: 2^48 bytes take tables of 32 MiB a file
// here.
inline constexpr std::uint64_t kMaxFileBytes = 1ull << 48;
// The receiver's window: files asked for and segments signed ahead of their answers. 64 segments
// cover 4 GiB: enough to hide 50 ms even at 10 GB/s of comparing.
inline constexpr std::size_t kMaxOpenFiles = 4096;
// A full window is refilled from here on: waking the merger for each file costs more than the file.
inline constexpr std::size_t kResumeOpenFiles = kMaxOpenFiles * 3 / 4;
inline constexpr std::size_t kMaxOpenSegments = 64;

// The rolling search looks at 1 GiB of source against that part of the basis, and this much on both
// sides of it.
inline constexpr std::uint64_t kRollingWindow = 1ull << 30;
inline constexpr std::uint64_t kRollingMargin = 64ull << 20;
// So many ranges without one equal block, and none with, and the rest of the file goes straight to
// the rolling search: block hashes would cost 1 KiB a range for nothing.
inline constexpr unsigned kFineGiveUp = 4;

// Connections of a busy session, unless told. One connection is read and decrypted by one thread:
// 1 GiB from end to end on 2 cores took 1.25 s with one, 0.88 s with two, 1.00 s with three.
inline constexpr unsigned kBusyStreams = 2;

// Direct I/O pays from here on; below, the page cache is at hand anyway.
inline constexpr std::uint64_t kDirectBytes = 64ull << 20;

}  // namespace volferry::session
