// SPDX-License-Identifier: Apache-2.0
// Files, loop devices and loop-mounted file systems for tests. Everything goes away with its
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/unique_fd.h"

namespace volferry::io::test {

// Seeded pseudo-random bytes without a zero among them, so that zeroed ranges can be told.
std::vector<std::uint8_t> pattern(std::size_t size, std::uint64_t seed);

// A directory below `parent` ("." for the working directory).
class ScratchDir {
 public:
  explicit ScratchDir(const std::string& parent = ".");
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  ~ScratchDir();
  const std::string& path() const { return path_; }
  // A new file with this content, open for reading and writing with `flags` added.
  base::UniqueFd file(const std::string& name, const std::vector<std::uint8_t>& content,
                      int flags = 0) const;
  base::UniqueFd sparse(const std::string& name, std::uint64_t size) const;

 private:
  std::string path_;
};

std::vector<std::uint8_t> content_of(int fd);
std::uint64_t allocated_bytes(int fd);

// A loop device over a sparse image in the working directory.
class LoopDevice {
 public:
  // Null, with the reason in `why`, where none can be made.
  static std::unique_ptr<LoopDevice> make(std::uint64_t size, std::string& why);
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  ~LoopDevice();
  const std::string& path() const { return path_; }
  base::UniqueFd open(int flags) const;

 private:
  LoopDevice() = default;
  ScratchDir dir_;
  std::string path_;
};

// A fresh file system ("xfs", "btrfs", "ext4") on a loop device, mounted.
class LoopMount {
 public:
  static std::unique_ptr<LoopMount> make(const std::string& type, std::string& why);
  LoopMount(const LoopMount&) = delete;
  LoopMount& operator=(const LoopMount&) = delete;
  ~LoopMount();
  const std::string& path() const { return dir_.path(); }

 private:
  LoopMount() = default;
  std::unique_ptr<LoopDevice> device_;
  ScratchDir dir_;
  bool mounted_ = false;
};

// A tmpfs of `bytes`, for a full disk.
class TinyTmpfs {
 public:
  static std::unique_ptr<TinyTmpfs> make(std::uint64_t bytes, std::string& why);
  TinyTmpfs(const TinyTmpfs&) = delete;
  TinyTmpfs& operator=(const TinyTmpfs&) = delete;
  ~TinyTmpfs();
  const std::string& path() const { return dir_.path(); }

 private:
  TinyTmpfs() = default;
  ScratchDir dir_;
  bool mounted_ = false;
};

}  // namespace volferry::io::test
