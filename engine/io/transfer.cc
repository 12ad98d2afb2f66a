// SPDX-License-Identifier: Apache-2.0
// Whole reads and writes with pread and pwrite.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/io/file.h"
#include "engine/io/internal/request.h"

namespace volferry::io {
namespace {

// One call moves at most 2 GiB - 4 KiB (MAX_RW_COUNT); this keeps the parts of a direct transfer
// aligned.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

std::unexpected<Error> transfer_error(const char* name, int fd, std::uint64_t offset,
                                      std::size_t length, int os_errno) {
  return fail_sys(fmt::format("{} fd {} @{}+{}", name, fd, offset, length), os_errno);
}

}  // namespace

Result<std::size_t> read_full(int fd, std::uint8_t* data, std::size_t length,
                              std::uint64_t offset) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t count = ::pread(fd, data + done, std::min(length - done, kMaxTransfer),
                                  static_cast<off_t>(offset + done));
    if (count == 0) break;
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      continue;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EINVAL && done > 0 && internal::is_end_of_file(fd, offset + done)) break;
    return transfer_error("pread", fd, offset, length, error);
  }
  return done;
}

Status write_full(int fd, const std::uint8_t* data, std::size_t length, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t count = ::pwrite(fd, data + done, std::min(length - done, kMaxTransfer),
                                   static_cast<off_t>(offset + done));
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      continue;
    }
    // A write of nothing without a reason would be repeated for ever.
    const int error = count == 0 ? EIO : errno;
    if (error == EINTR) continue;
    return transfer_error("pwrite", fd, offset, length, error);
  }
  return {};
}

}  // namespace volferry::io
