// SPDX-License-Identifier: Apache-2.0
// The identity tuple: what both movers say about their volume and their transfer in the handshake,
// as JSON, and what each accepts of the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace volferry::cli::mover {

// In bytes; longer ones are refused, of one's own settings and of the peer's alike.
inline constexpr std::size_t kMaxReplicationId = 63;
inline constexpr std::size_t kMaxAttempt = 64;
inline constexpr std::size_t kMaxVolumeId = 256;
inline constexpr std::size_t kMaxFinalSyncId = 63;
inline constexpr std::size_t kMaxAcknowledged = 519;  // eight tokens of at most 64

enum class VolumeMode : std::uint8_t { kFilesystem, kBlock };
// "Filesystem" or "Block".
std::string_view mode_name(VolumeMode mode);
// Of the volume at `path`: a directory is a file system, files and devices are images. kUsage for
// anything else.
Result<VolumeMode> volume_mode(const std::string& path);

struct Identity {
  std::string replication_id;
  std::string epoch;
  std::uint64_t seq = 0;
  std::string attempt;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  std::uint64_t size = 0;
  std::string source_volume_id;
  std::string final_sync_id;
  // Tokens of the conflicts that the end's owner has permitted, separated by commas.
  std::string acknowledged;

  bool operator==(const Identity&) const = default;
};

// {"v":1,"replication_id":...} as it stands in the result's `peer`: without what is acknowledged.
std::string identity_json(const Identity& identity);
// The tuple for the handshake.
std::vector<std::uint8_t> encode_identity(const Identity& identity);

// What the peer sent: nothing where it sent no tuple (a plain `volferry sync`). Unknown fields are
// skipped, missing ones keep their defaults. kIdentity where it is no tuple of version 1, or a
// field has another type, is too long, or holds what may not be repeated in a log.
Result<std::optional<Identity>> decode_identity(const std::vector<std::uint8_t>& bytes);

}  // namespace volferry::cli::mover
