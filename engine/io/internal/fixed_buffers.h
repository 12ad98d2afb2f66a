// SPDX-License-Identifier: Apache-2.0
// A pool's slots as registered io_uring buffers.
//
// Registering pins pages, and pinning touches them: a 512 MiB pool registered at once costs 0.2 s
// and 512 MiB of resident memory before the first byte moves. So the ring gets an empty table, and
// a slot is entered in it when it is first used; the pool hands out recently used slots first, so a
// small job registers few. Where the kernel refuses a slot (RLIMIT_MEMLOCK is spent), the ones
// before it stay registered and the others are used plain.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <vector>

#include "engine/base/buffer.h"

namespace volferry::io::internal {

// Belongs to one ring and its thread.
class FixedBuffers {
 public:
  // Makes the table and registers the first slot. False where the kernel refuses either; the ring
  // is usable all the same.
  bool attach(io_uring* ring, const base::BufferPool& pool);

  // The registered buffer that holds `slot`, registering it now if need be; -1 if it must be used
  // as plain memory.
  int index_of(int slot);

 private:
  bool register_index(unsigned index);

  io_uring* ring_ = nullptr;
  base::MutBytes region_;
  std::size_t buffer_bytes_ = 0;  // size of one registered buffer: one or several slots
  unsigned slots_per_buffer_ = 1;
  std::vector<bool> registered_;
  bool refused_ = false;  // the kernel refused one: ask no more
};

}  // namespace volferry::io::internal
