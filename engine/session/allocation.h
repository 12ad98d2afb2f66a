// SPDX-License-Identifier: Apache-2.0
// Where a file at the destination takes space, compared with and made like the source. Both sides
// read as zeros there, so content is never at stake.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/error.h"
#include "engine/io/file.h"

namespace volferry::session {

// Where a part of a regular file takes space, by a file system that tells (io::tells_allocation).
struct AllocationMap {
  std::vector<io::Extent> extents;  // ascending, apart
  std::uint64_t file_size = 0;
  std::uint64_t block = 4096;  // the file system's unit

  // Of [begin, end), cut to the file's size; the calls below are about parts of that.
  static Result<AllocationMap> load(int fd, std::uint64_t begin, std::uint64_t end);
  bool any(std::uint64_t begin, std::uint64_t end) const;
  // Whether [begin, end) is as at the source, which has a hole there or is allocated throughout. A
  // hole smaller than this side's blocks asks for nothing.
  bool as_source(std::uint64_t begin, std::uint64_t end, bool hole) const;
};

// Whether `destination` takes space just where `source` has data. Both have the same size.
Result<bool> same_allocation(int source, int destination);

// Makes [begin, end) a hole where anything of it takes space; zeros what shares a block with more.
Status make_hole(int fd, std::uint64_t begin, std::uint64_t end);
// Makes holes in [begin, end) take space.
Status fill_holes(int fd, std::uint64_t begin, std::uint64_t end);

}  // namespace volferry::session
