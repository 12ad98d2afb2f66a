// SPDX-License-Identifier: Apache-2.0
// Where a file has data, and how long it is.
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/io/file.h"

namespace volferry::io {

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
