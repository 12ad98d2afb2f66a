// SPDX-License-Identifier: Apache-2.0
// What stat tells of one file system object, and setting it. Nothing here follows a symbolic link.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"

namespace volferry::io {

enum class FileType : std::uint8_t {
  kFile,
  kDirectory,
  kSymlink,
  kFifo,
  kSocket,
  kCharDevice,
  kBlockDevice
};

struct Timestamp {
  std::int64_t seconds = 0;       // since the epoch, negative before it
  std::uint32_t nanoseconds = 0;  // 0 .. 999,999,999
  bool operator==(const Timestamp&) const = default;
};

struct Metadata {
  FileType type = FileType::kFile;
  std::uint16_t mode = 0;  // 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  // of 512 bytes
  Timestamp mtime;
  Timestamp ctime;
  std::uint64_t nlink = 1;
  std::uint64_t dev = 0;
  std::uint64_t ino = 0;
  std::uint64_t rdev = 0;
};

// `name` is one component below `dirfd`, or "" for dirfd itself. Context of errors: "stat NAME".
Result<Metadata> stat_at(int dirfd, const std::string& name);
Result<Metadata> stat_fd(int fd);

// True if the two stats show the same content as far as stat can tell: size, mtime and ctime.
bool unchanged(const Metadata& before, const Metadata& after);

Result<std::string> read_link_at(int dirfd, const std::string& name);

// Setters. `name` "" means the descriptor itself, which must then be open (not O_PATH) for
// set_mode_at.
Status set_owner_at(int dirfd, const std::string& name, std::uint32_t uid, std::uint32_t gid);
// Not for symbolic links, which have no mode of their own on Linux.
Status set_mode_at(int dirfd, const std::string& name, std::uint16_t mode);
Status set_mtime_at(int dirfd, const std::string& name, Timestamp mtime);  // atime is left alone

}  // namespace volferry::io
