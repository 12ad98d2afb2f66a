// SPDX-License-Identifier: Apache-2.0
// Direct I/O: what it needs, switching it, and whether the page cache would serve better.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "engine/io/file.h"

namespace volferry::io {
namespace {

constexpr std::uint32_t kCommonAlignment = 4096;

// mostly_cached looks at `kSamples` windows of `kSamplePages` pages: 100 us for a file of any size,
// and wrong only for files that are about half cached.
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kSamples = 32;
constexpr std::uint64_t kSamplePages = 16;

// The kernel's struct statx, which newer than glibc's has the alignment fields.
bool kernel_statx(int fd, struct statx& status) {
  return ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
         (status.stx_mask & STATX_DIOALIGN) != 0;
}

bool can_be_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  if ((flags & O_DIRECT) != 0) return true;
  return set_direct(fd, true) && set_direct(fd, false);
}

}  // namespace

std::optional<std::uint32_t> direct_alignment(int fd) {
  struct statx status{};
  if (kernel_statx(fd, status)) {
    if (status.stx_dio_offset_align == 0) return std::nullopt;
    return std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
  }
  if (!can_be_direct(fd)) return std::nullopt;
  int logical = 0;
  if (::ioctl(fd, BLKSSZGET, &logical) == 0 && logical > 0) {
    return static_cast<std::uint32_t>(logical);
  }
  return kCommonAlignment;
}

bool set_direct(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const int wanted = on ? flags | O_DIRECT : flags & ~O_DIRECT;
  return wanted == flags || ::fcntl(fd, F_SETFL, wanted) == 0;
}

bool mostly_cached(int fd, std::uint64_t size) {
  if (size == 0) return false;
  void* const mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) return false;
  const std::uint64_t pages = (size + kPageBytes - 1) / kPageBytes;
  const std::uint64_t samples = std::clamp<std::uint64_t>(pages / kSamplePages, 1, kSamples);
  std::uint64_t seen = 0;
  std::uint64_t resident = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t first = pages / samples * i;
    const std::uint64_t count = std::min(kSamplePages, pages - first);
    std::array<unsigned char, kSamplePages> in_core{};
    if (::mincore(static_cast<std::uint8_t*>(mapping) + first * kPageBytes, count * kPageBytes,
                  in_core.data()) != 0) {
      continue;
    }
    seen += count;
    resident += static_cast<std::uint64_t>(
        std::count_if(in_core.begin(), in_core.begin() + count,
                      [](unsigned char page) { return (page & 1U) != 0; }));
  }
  ::munmap(mapping, size);
  return seen > 0 && resident * 2 > seen;
}

}  // namespace volferry::io
