// SPDX-License-Identifier: Apache-2.0
#include "engine/base/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base/check.h"

namespace volferry::base {

Buffer Buffer::heap(std::size_t capacity) {
  Buffer buffer;
  const std::size_t rounded = (capacity + 63) / 64 * 64;
  buffer.data_ = static_cast<std::uint8_t*>(std::aligned_alloc(64, rounded == 0 ? 64 : rounded));
  VF_CHECK(buffer.data_ != nullptr, "out of memory");
  buffer.capacity_ = capacity;
  return buffer;
}

Buffer Buffer::copy_of(Bytes bytes) {
  Buffer buffer = heap(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data_, bytes.data(), bytes.size());
  buffer.size_ = bytes.size();
  return buffer;
}

void Buffer::set_size(std::size_t size) {
  VF_CHECK(size <= capacity_, "buffer size past its capacity");
  size_ = size;
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(size_, other.size_);
  std::swap(slot_, other.slot_);
}

void Buffer::release() {
  if (pool_ != nullptr) {
    pool_->give_back(slot_);
  } else {
    std::free(data_);
  }
  pool_ = nullptr;
  data_ = nullptr;
}

Result<std::unique_ptr<BufferPool>> BufferPool::create(unsigned slots, std::size_t slot_bytes) {
  VF_CHECK(slots > 0 && slot_bytes > 0 && slot_bytes % 4096 == 0, "bad pool geometry");
  std::unique_ptr<BufferPool> pool(new BufferPool());
  void* region = ::mmap(nullptr, slots * slot_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return fail_sys("mmap of the buffer pool");
  pool->region_ = static_cast<std::uint8_t*>(region);
  pool->slots_ = slots;
  pool->slot_bytes_ = slot_bytes;
  // Lowest slot on top of the stack, so that a small job touches few pages.
  for (unsigned i = slots; i > 0; --i) pool->free_.push_back(static_cast<int>(i - 1));
  pool->fewest_free_ = slots;
  return pool;
}

BufferPool::~BufferPool() {
  if (region_ != nullptr) ::munmap(region_, slots_ * slot_bytes_);
}

Buffer BufferPool::lease(int slot) {
  Buffer buffer;
  buffer.pool_ = this;
  buffer.slot_ = slot;
  buffer.data_ = region_ + static_cast<std::size_t>(slot) * slot_bytes_;
  buffer.capacity_ = slot_bytes_;
  return buffer;
}

Result<Buffer> BufferPool::acquire() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return cancelled_ || !free_.empty(); });
  if (cancelled_) return fail_with(Code::kCancelled, "buffer pool closed");
  const int slot = free_.back();
  free_.pop_back();
  fewest_free_ = std::min(fewest_free_, free_.size());
  return lease(slot);
}

Buffer BufferPool::try_acquire() {
  const std::lock_guard lock(mutex_);
  if (cancelled_ || free_.empty()) return {};
  const int slot = free_.back();
  free_.pop_back();
  fewest_free_ = std::min(fewest_free_, free_.size());
  return lease(slot);
}

void BufferPool::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  returned_.notify_all();
}

unsigned BufferPool::free_slots() const {
  const std::lock_guard lock(mutex_);
  return static_cast<unsigned>(free_.size());
}

unsigned BufferPool::peak_leased() const {
  const std::lock_guard lock(mutex_);
  return slots_ - static_cast<unsigned>(fewest_free_);
}

void BufferPool::give_back(int slot) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }
  returned_.notify_one();
}

}  // namespace volferry::base
