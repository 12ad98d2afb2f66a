// SPDX-License-Identifier: Apache-2.0
#include "engine/session/allocation.h"

#include <sys/stat.h>

#include <algorithm>

namespace volferry::session {

namespace {

// Compared at a time: a map of it has 16 Ki extents at most, with blocks of 4 KiB.
constexpr std::uint64_t kWindow = 128ull << 20;

}  // namespace

Result<AllocationMap> AllocationMap::load(int fd, std::uint64_t begin, std::uint64_t end) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_sys("fstat");
  AllocationMap map;
  map.file_size = static_cast<std::uint64_t>(status.st_size);
  map.block = static_cast<std::uint64_t>(std::max<blksize_t>(status.st_blksize, 512));
  VF_ASSIGN(map.extents, io::allocated(fd, begin, std::min(end, map.file_size)));
  return map;
}

bool AllocationMap::any(std::uint64_t begin, std::uint64_t end) const {
  const auto it = std::ranges::partition_point(
      extents, [&](const io::Extent& extent) { return extent.end <= begin; });
  return it != extents.end() && it->begin < end;
}

bool AllocationMap::as_source(std::uint64_t begin, std::uint64_t end, bool hole) const {
  const std::uint64_t stop = std::min(end, file_size);
  if (hole) {
    // Whole blocks of this side; the last one may be cut by the file's end.
    const std::uint64_t first = (begin + block - 1) / block * block;
    const std::uint64_t last = stop == file_size ? stop : stop / block * block;
    return first >= last || !any(first, last);
  }
  if (begin >= stop) return true;
  const auto it = std::ranges::partition_point(
      extents, [&](const io::Extent& extent) { return extent.end <= begin; });
  return it != extents.end() && it->begin <= begin && it->end >= stop;
}

Result<bool> same_allocation(int source, int destination) {
  VF_ASSIGN(const std::uint64_t size, io::data_size(destination));
  for (std::uint64_t begin = 0; begin < size; begin += kWindow) {
    const std::uint64_t end = std::min(begin + kWindow, size);
    VF_ASSIGN(const AllocationMap map, AllocationMap::load(destination, begin, end));
    for (std::uint64_t at = begin; at < end;) {
      VF_ASSIGN(const auto data, io::next_data(source, at, end));
      const std::uint64_t stop = data ? data->begin : end;
      if (!map.as_source(at, stop, true)) return false;
      if (!data) break;
      if (!map.as_source(stop, data->end, false)) return false;
      at = data->end;
    }
  }
  return true;
}

Status make_hole(int fd, std::uint64_t begin, std::uint64_t end) {
  VF_ASSIGN(const auto extent, io::next_allocated(fd, begin, end));
  if (!extent) return {};
  return io::zero_range(fd, begin, end - begin, io::ZeroMode::kHole);
}

Status fill_holes(int fd, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t at = begin; at < end;) {
    VF_ASSIGN(const auto extent, io::next_allocated(fd, at, end));
    const std::uint64_t stop = extent ? extent->begin : end;
    if (stop > at) VF_TRY(io::zero_range(fd, at, stop - at, io::ZeroMode::kAllocated));
    if (!extent) break;
    at = extent->end;
  }
  return {};
}

}  // namespace volferry::session
