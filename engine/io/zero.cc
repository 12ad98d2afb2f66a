// SPDX-License-Identifier: Apache-2.0
// Zeroing a range of a file or device.
//
// The kernel is asked for the cheapest way first, and what it refuses is done by the next one;
// writing zeros is the last and always works. On a device fallocate(PUNCH_HOLE) means "unmap, and
// reads give zeros afterwards" and is refused where the device cannot promise that (Linux
// block/fops.c, blkdev_fallocate); BLKZEROOUT zeroes without unmapping. BLKDISCARD is no way to
// zero: what a discarded block reads as is up to the device. Devices take whole logical blocks
// only, so the uneven head and tail are written; file systems zero those themselves.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/base/buffer.h"
#include "engine/io/file.h"

namespace volferry::io {
namespace {

constexpr std::size_t kZeroBufferBytes = 256 * 1024;
constexpr std::uint64_t kDirectAlignment = 4096;

constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
constexpr int kZero = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::unexpected<Error> zero_error(const char* call, int fd, Extent range, int os_errno) {
  return fail_sys(fmt::format("{} fd {} @{}+{}", call, fd, range.begin, range.end - range.begin),
                  os_errno);
}

// Errors that say "not in this way" rather than "not at all".
bool is_refusal(int error) {
  return error == EOPNOTSUPP || error == EINVAL || error == ENOTTY || error == ENOSYS ||
         error == ENODEV || error == EPERM;
}

// Turns direct I/O off for its lifetime where it is on: zeros of any offset and length then go
// through the page cache, which the kernel keeps coherent.
class BufferedWrites {
 public:
  explicit BufferedWrites(int fd) : fd_(fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    was_direct_ = flags >= 0 && (flags & O_DIRECT) != 0 && set_direct(fd, false);
  }
  BufferedWrites(const BufferedWrites&) = delete;
  BufferedWrites& operator=(const BufferedWrites&) = delete;
  ~BufferedWrites() {
    if (was_direct_) set_direct(fd_, true);
  }

 private:
  int fd_;
  bool was_direct_ = false;
};

Status write_zeros(int fd, Extent range) {
  if (range.begin >= range.end) return {};
  alignas(kDirectAlignment) static constinit const std::array<std::uint8_t, kZeroBufferBytes>
      kZeros{};
  const bool aligned = range.begin % kDirectAlignment == 0 && range.end % kDirectAlignment == 0;
  std::optional<BufferedWrites> buffered;
  if (!aligned) buffered.emplace(fd);
  for (std::uint64_t at = range.begin; at < range.end;) {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(range.end - at, kZeroBufferBytes));
    VF_TRY(write_full(fd, kZeros.data(), part, at));
    at += part;
  }
  return {};
}

// fallocate over the range. False where refused.
Result<bool> try_fallocate(int fd, int mode, Extent range) {
  for (;;) {
    if (::fallocate(fd, mode, static_cast<off_t>(range.begin),
                    static_cast<off_t>(range.end - range.begin)) == 0) {
      return true;
    }
    if (errno == EINTR) continue;
    if (is_refusal(errno)) return false;
    return zero_error("fallocate", fd, range, errno);
  }
}

Status zero_file(int fd, Extent range, std::uint64_t size, std::uint64_t block, ZeroMode mode) {
  Extent asked = range;
  // A hole up to the end takes the last, partial block with it; KEEP_SIZE keeps the file from
  // growing.
  if (mode == ZeroMode::kHole && range.end == size) asked.end = round_up(range.end, block);
  VF_ASSIGN(const bool done, try_fallocate(fd, mode == ZeroMode::kHole ? kPunch : kZero, asked));
  return done ? Status{} : write_zeros(fd, range);
}

// True where the device zeroed the range, which is of whole logical blocks.
Result<bool> zero_blocks(int fd, Extent range, ZeroMode mode) {
  VF_ASSIGN(const bool done, try_fallocate(fd, mode == ZeroMode::kHole ? kPunch : kZero, range));
  if (done) return true;
  std::array<std::uint64_t, 2> argument{range.begin, range.end - range.begin};
  if (::ioctl(fd, BLKZEROOUT, argument.data()) == 0) return true;
  if (is_refusal(errno)) return false;
  return zero_error("ioctl BLKZEROOUT", fd, range, errno);
}

Status zero_device(int fd, Extent range, ZeroMode mode) {
  int logical = 0;
  if (::ioctl(fd, BLKSSZGET, &logical) != 0 || logical <= 0) return write_zeros(fd, range);
  const auto block = static_cast<std::uint64_t>(logical);
  const Extent whole{round_up(range.begin, block), range.end / block * block};
  if (whole.begin >= whole.end) return write_zeros(fd, range);
  VF_ASSIGN(const bool done, zero_blocks(fd, whole, mode));
  if (!done) return write_zeros(fd, range);
  VF_TRY(write_zeros(fd, {range.begin, whole.begin}));
  return write_zeros(fd, {whole.end, range.end});
}

}  // namespace

Status zero_range(int fd, std::uint64_t offset, std::uint64_t length, ZeroMode mode) {
  VF_ASSIGN(const std::uint64_t size, data_size(fd));
  if (offset >= size || length == 0) return {};
  const Extent range{offset, offset + std::min(length, size - offset)};
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_sys("fstat");
  if (S_ISBLK(status.st_mode)) return zero_device(fd, range, mode);
  const auto block = static_cast<std::uint64_t>(std::max<blksize_t>(status.st_blksize, 512));
  return zero_file(fd, range, size, block, mode);
}

}  // namespace volferry::io
