// SPDX-License-Identifier: Apache-2.0
// Copies inside the kernel: whole files as clones, ranges by copy_file_range.
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "engine/io/file.h"

namespace volferry::io {
namespace {

// Bytes for one copy_file_range: long enough to cost nothing, short enough that a signal is
// noticed.
constexpr std::uint64_t kKernelCopyBytes = std::uint64_t{256} << 20;
// For read and write: stays in a second-level cache of 1 MiB, and a system call for each costs
// below a hundredth of the copy.
constexpr std::size_t kCopyBufferBytes = std::size_t{256} << 10;
constexpr std::size_t kDirectAlignment = 4096;

// What is left to copy.
struct Copy {
  int from = -1;
  std::uint64_t from_offset = 0;
  int to = -1;
  std::uint64_t to_offset = 0;
  std::uint64_t length = 0;

  void advance(std::uint64_t bytes) {
    from_offset += bytes;
    to_offset += bytes;
    length -= bytes;
  }
};

std::unexpected<Error> write_error(Error error) {
  const bool full = error.os_errno == ENOSPC || error.os_errno == EDQUOT;
  error.code = full ? Code::kDestinationFull : Code::kDestinationWrite;
  return std::unexpected(std::move(error));
}

struct FreeDeleter {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};

Status copy_by_buffer(Copy copy) {
  // Kept for the thread's next copy: between two file systems every extent of a sparse file comes
  // here, and the page faults of a fresh buffer cost as much as the copy.
  thread_local const std::unique_ptr<std::uint8_t, FreeDeleter> buffer(
      static_cast<std::uint8_t*>(std::aligned_alloc(kDirectAlignment, kCopyBufferBytes)));
  if (buffer == nullptr) return fail_sys("memory for a copy", ENOMEM);
  while (copy.length > 0) {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(copy.length, kCopyBufferBytes));
    auto count = read_full(copy.from, buffer.get(), part, copy.from_offset);
    if (!count) {
      Error error = std::move(count).error();
      error.code = Code::kSourceRead;
      return std::unexpected(std::move(error));
    }
    if (auto written = write_full(copy.to, buffer.get(), *count, copy.to_offset); !written) {
      return write_error(std::move(written).error());
    }
    copy.advance(*count);
    if (*count < part) {
      return fail_with(Code::kSourceRead, fmt::format("the source ends at {}, {} bytes too early",
                                                      copy.from_offset, copy.length));
    }
  }
  return {};
}

// Errors of the destination that reading and writing would only meet again.
bool is_out_of_room(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

Result<bool> clone_file(int from, int to) {
  for (;;) {
    if (::ioctl(to, FICLONE, from) == 0) return true;
    switch (errno) {
      case EINTR:
        continue;
      case EOPNOTSUPP:
      case EXDEV:
      case EINVAL:
      case ENOTTY:
      case ENOSYS:
        return false;
      default:
        return fail_sys("ioctl FICLONE");
    }
  }
}

Status copy_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                  std::uint64_t length) {
  Copy copy{from, from_offset, to, to_offset, length};
  while (copy.length > 0) {
    auto from_at = static_cast<off64_t>(copy.from_offset);
    auto to_at = static_cast<off64_t>(copy.to_offset);
    const auto part = static_cast<std::size_t>(std::min(copy.length, kKernelCopyBytes));
    const ssize_t count = ::copy_file_range(from, &from_at, to, &to_at, part, 0);
    if (count > 0) {
      copy.advance(static_cast<std::uint64_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && is_out_of_room(errno)) {
      return write_error(
          {Code::kSystem, errno,
           fmt::format("copy_file_range to fd {} @{}+{}", to, copy.to_offset, copy.length)});
    }
    // Refused, or an error that may be of either side, or an end that may be none (files of procfs
    // say 0 at once): reading and writing the rest works, or tells what is wrong.
    return copy_by_buffer(copy);
  }
  return {};
}

}  // namespace volferry::io
