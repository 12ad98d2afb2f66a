// SPDX-License-Identifier: Apache-2.0
#include "engine/io/internal/fixed_buffers.h"

#include <sys/uio.h>

#include <algorithm>

#include "engine/base/check.h"

namespace volferry::io::internal {
namespace {

// Limits of the kernel's io_uring/rsrc.c: IORING_MAX_REG_BUFFERS entries of at most 1 GiB.
constexpr unsigned kMaxBuffers = 1U << 14;
constexpr std::size_t kMaxBufferBytes = std::size_t{1} << 30;

}  // namespace

bool FixedBuffers::attach(io_uring* ring, const base::BufferPool& pool) {
  slots_per_buffer_ = (pool.slots() + kMaxBuffers - 1) / kMaxBuffers;
  buffer_bytes_ = pool.slot_bytes() * slots_per_buffer_;
  if (buffer_bytes_ > kMaxBufferBytes) return false;
  const unsigned buffers = (pool.slots() + slots_per_buffer_ - 1) / slots_per_buffer_;
  if (io_uring_register_buffers_sparse(ring, buffers) != 0) return false;
  ring_ = ring;
  region_ = pool.region();
  registered_.assign(buffers, false);
  if (register_index(0)) return true;
  io_uring_unregister_buffers(ring);
  return false;
}

int FixedBuffers::index_of(int slot) {
  const unsigned index = static_cast<unsigned>(slot) / slots_per_buffer_;
  VF_CHECK(index < registered_.size(), "slot of another pool");
  if (!registered_[index] && !register_index(index)) return -1;
  return static_cast<int>(index);
}

bool FixedBuffers::register_index(unsigned index) {
  if (refused_) return false;
  const std::size_t begin = index * buffer_bytes_;
  const iovec memory{region_.data() + begin, std::min(buffer_bytes_, region_.size() - begin)};
  const int done = io_uring_register_buffers_update_tag(ring_, index, &memory, nullptr, 1);
  registered_[index] = done == 1;
  refused_ = done != 1;
  return done == 1;
}

}  // namespace volferry::io::internal
