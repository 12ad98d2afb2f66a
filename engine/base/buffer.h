// SPDX-License-Identifier: Apache-2.0
// Data buffers. Bulk bytes live in page-aligned slots of one fixed pool per process end, so that
// memory is bounded, a frame can be decrypted straight into the buffer that is then written to
// disk, and io_uring can register the region once. It stands in base because transport fills
// buffers and io empties them, and neither may know the other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"

namespace volferry::base {

class BufferPool;

// A move-only lease of one pool slot, or of a heap block (`Buffer::heap`). Empty by default. The
// lease goes back to the pool on destruction, from any thread; the pool outlives its leases.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  // `capacity` bytes of heap memory, 64-byte aligned, not zeroed.
  static Buffer heap(std::size_t capacity);
  static Buffer copy_of(Bytes bytes);

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  // Bytes in use, set by whoever filled the buffer; at most `capacity`.
  std::size_t size() const { return size_; }
  void set_size(std::size_t size);
  Bytes bytes() const { return {data_, size_}; }
  MutBytes space() { return {data_, capacity_}; }
  bool empty() const { return size_ == 0; }
  // The slot's index in its pool, or -1 for heap memory: what a registered io_uring buffer is named
  // by.
  int slot() const { return slot_; }
  const BufferPool* pool() const { return pool_; }

 private:
  friend class BufferPool;
  void swap(Buffer& other) noexcept;
  void release();

  BufferPool* pool_ = nullptr;
  std::uint8_t* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  int slot_ = -1;
};

// `slots` buffers of `slot_bytes` each (a multiple of 4096) in one anonymous mapping, touched only
// when used. Thread-safe.
class BufferPool {
 public:
  static Result<std::unique_ptr<BufferPool>> create(unsigned slots, std::size_t slot_bytes);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Waits for a free slot. kCancelled after `cancel`. Most recently returned slots first: they are
  // in cache.
  Result<Buffer> acquire();
  // A free slot, or an empty buffer (data() == nullptr) at once.
  Buffer try_acquire();
  // Wakes all waiters; every later `acquire` fails.
  void cancel();

  unsigned slots() const { return slots_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  unsigned free_slots() const;
  // The most slots that were leased at once so far.
  unsigned peak_leased() const;
  // The whole region, for io_uring_register_buffers.
  MutBytes region() const { return {region_, slots_ * slot_bytes_}; }

 private:
  friend class Buffer;
  BufferPool() = default;
  void give_back(int slot);
  Buffer lease(int slot);

  std::uint8_t* region_ = nullptr;
  unsigned slots_ = 0;
  std::size_t slot_bytes_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<int> free_;
  std::size_t fewest_free_ = 0;
  bool cancelled_ = false;
};

}  // namespace volferry::base
