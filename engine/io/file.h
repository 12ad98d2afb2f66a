// SPDX-License-Identifier: Apache-2.0
// What a data file or block device can do besides reading and writing: sizes, holes, zeroing,
// cloning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/unique_fd.h"

namespace volferry::io {

// Half-open.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const Extent&) const = default;
};

// The next data extent at or after `offset` (lseek SEEK_DATA/SEEK_HOLE), cut at `size`; nothing
// where only holes follow. A file system or device without hole support is one extent to the end.
// The answer is a hint: a hole reported as data is harmless.
Result<std::optional<Extent>> next_data(int fd, std::uint64_t offset, std::uint64_t size);

// The first extent at or after `offset` that takes space, adjoining ones joined. Unlike next_data
// it counts what is allocated and was never written (fallocate), which reads as zeros. As next_data
// where `tells_allocation` is false.
Result<std::optional<Extent>> next_allocated(int fd, std::uint64_t offset, std::uint64_t size);
// All of them in [offset, size).
Result<std::vector<Extent>> allocated(int fd, std::uint64_t offset, std::uint64_t size);
// True for regular files of file systems that tell where a file takes space.
bool tells_allocation(int fd);

// Size in bytes of a regular file or block device (BLKGETSIZE64).
Result<std::uint64_t> data_size(int fd);

enum class ZeroMode : std::uint8_t {
  kHole,       // deallocate: punch a hole; on a device discard that is known to read back zeros
               // (BLKZEROOUT with unmap)
  kAllocated,  // keep or make it allocated: FALLOC_FL_ZERO_RANGE, or writing zeros
};
// Makes [offset, offset + length) read as zeros, on files and devices. What the kernel or device
// refuses is done by writing zeros. Does not grow a file.
Status zero_range(int fd, std::uint64_t offset, std::uint64_t length, ZeroMode mode);

// Clones the whole of `from` into the empty file `to` by FICLONE. False where the file system
// cannot (EOPNOTSUPP, EXDEV, EINVAL, ENOTTY), the two files then unchanged.
Result<bool> clone_file(int from, int to);

// Copies bytes inside the kernel (copy_file_range), falling back to read and write. Short copies
// are continued; an early end of `from` is kSourceRead, as is a read that fails; a write that fails
// is kDestinationFull or kDestinationWrite. Ranges of one file must not overlap.
Status copy_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                  std::uint64_t length);

// pread/pwrite until all is done, EINTR repeated. `read_full` returns fewer bytes only at the end
// of the file.
Result<std::size_t> read_full(int fd, std::uint8_t* data, std::size_t length, std::uint64_t offset);
Status write_full(int fd, const std::uint8_t* data, std::size_t length, std::uint64_t offset);

// Direct I/O: alignment that O_DIRECT needs for memory, offset and length on this file (statx
// STATX_DIOALIGN, else the device's logical block size, else 4096); nothing where direct I/O is not
// supported.
std::optional<std::uint32_t> direct_alignment(int fd);
// Turns O_DIRECT on or off for an open descriptor (fcntl F_SETFL). False where refused.
bool set_direct(int fd, bool on);
// True if most of the file is in the page cache (mincore over a sample, without touching it).
bool mostly_cached(int fd, std::uint64_t size);

}  // namespace volferry::io
