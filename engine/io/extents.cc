// SPDX-License-Identifier: Apache-2.0
// Where a file has data, and how long it is.
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/io/file.h"

namespace volferry::io {

namespace {

// A request for a file's extents, with room for the answer. Extents that still wait for their place
// on disk are told too, so nothing has to be flushed.
class ExtentMap {
 public:
  static constexpr std::uint32_t kRoom = 128;  // 7 KiB of stack

  // False where the file system has no such map. `room` 0: only asks whether it has.
  bool load(int fd, std::uint64_t begin, std::uint64_t end, std::uint32_t room) {
    auto* head = reinterpret_cast<struct fiemap*>(memory_.data());
    *head = {};
    head->fm_start = begin;
    head->fm_length = end - begin;
    head->fm_extent_count = room;
    if (::ioctl(fd, FS_IOC_FIEMAP, head) != 0) return false;
    count_ = std::min(head->fm_mapped_extents, room);
    return true;
  }
  std::uint32_t count() const { return count_; }
  Extent at(std::uint32_t index) const {
    struct fiemap_extent extent;
    std::memcpy(&extent, memory_.data() + sizeof(struct fiemap) + index * sizeof extent,
                sizeof extent);
    return {extent.fe_logical, extent.fe_logical + extent.fe_length};
  }

 private:
  alignas(struct fiemap) std::array<
      std::uint8_t, sizeof(struct fiemap) + kRoom * sizeof(struct fiemap_extent)> memory_ = {};
  std::uint32_t count_ = 0;
};

}  // namespace

bool tells_allocation(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  ExtentMap map;
  if (map.load(fd, 0, 1, 0)) return true;
  // No map, but pages that are there are data and all others holes.
  struct statfs where{};
  return ::fstatfs(fd, &where) == 0 && where.f_type == TMPFS_MAGIC;
}

namespace {

// Gathers at most `limit` extents.
Result<std::vector<Extent>> gather(int fd, std::uint64_t offset, std::uint64_t size,
                                   std::size_t limit) {
  std::vector<Extent> found;
  ExtentMap map;
  for (std::uint64_t at = offset; at < size;) {
    if (!map.load(fd, at, size, ExtentMap::kRoom)) {
      VF_ASSIGN(const auto data, next_data(fd, at, size));
      if (!data) break;
      found.push_back(*data);
      if (found.size() == limit) break;
      at = data->end;
      continue;
    }
    for (std::uint32_t i = 0; i < map.count(); ++i) {
      const std::uint64_t begin = std::max(map.at(i).begin, offset);
      const std::uint64_t end = std::min(map.at(i).end, size);
      if (begin >= end) continue;
      if (!found.empty() && begin <= found.back().end) {
        found.back().end = std::max(found.back().end, end);
      } else if (found.size() == limit) {
        return found;
      } else {
        found.push_back({begin, end});
      }
    }
    if (map.count() < ExtentMap::kRoom || found.empty() || found.back().end <= at) break;
    at = found.back().end;
  }
  return found;
}

}  // namespace

Result<std::vector<Extent>> allocated(int fd, std::uint64_t offset, std::uint64_t size) {
  return gather(fd, offset, size, SIZE_MAX);
}

Result<std::optional<Extent>> next_allocated(int fd, std::uint64_t offset, std::uint64_t size) {
  VF_ASSIGN(const std::vector<Extent> first, gather(fd, offset, size, 1));
  if (first.empty()) return std::nullopt;
  return first.front();
}

Result<std::optional<Extent>> next_data(int fd, std::uint64_t offset, std::uint64_t size) {
  if (offset >= size) return std::nullopt;
  const off_t begin = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (begin < 0) {
    if (errno == ENXIO) return std::nullopt;
    if (errno == EBADF) return fail_sys("lseek SEEK_DATA");
    // Devices and file systems without holes answer EINVAL, EOPNOTSUPP or ENOTTY; whatever else it
    // is, reading tells.
    return Extent{offset, size};
  }
  const auto data = std::max(static_cast<std::uint64_t>(begin), offset);
  if (data >= size) return std::nullopt;
  const off_t hole = ::lseek(fd, static_cast<off_t>(data), SEEK_HOLE);
  // No answer, or the data was punched out in between: data to the end is the harmless reading.
  if (hole < 0 || static_cast<std::uint64_t>(hole) <= data) return Extent{data, size};
  return Extent{data, std::min(static_cast<std::uint64_t>(hole), size)};
}

Result<std::uint64_t> data_size(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_sys("fstat");
  if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  if (!S_ISBLK(status.st_mode)) {
    return fail_with(Code::kUnsupported, "neither a regular file nor a block device");
  }
  std::uint64_t bytes = 0;
  if (::ioctl(fd, BLKGETSIZE64, &bytes) != 0) return fail_sys("ioctl BLKGETSIZE64");
  return bytes;
}

}  // namespace volferry::io
