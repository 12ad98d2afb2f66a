// SPDX-License-Identifier: Apache-2.0
#include "engine/base/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

namespace volferry::base {
namespace {

TEST(Buffer, IsEmptyByDefault) {
  const Buffer buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.slot(), -1);
}

TEST(Buffer, HeapMemoryIsAligned) {
  for (const std::size_t size : {0UL, 1UL, 63UL, 64UL, 65UL, 100000UL}) {
    Buffer buffer = Buffer::heap(size);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(buffer.capacity(), size);
    EXPECT_EQ(buffer.size(), 0U);
    EXPECT_EQ(buffer.pool(), nullptr);
    std::memset(buffer.data(), 1, size);
  }
}

TEST(Buffer, CopiesBytes) {
  const Buffer buffer = Buffer::copy_of(as_bytes("hello"));
  EXPECT_EQ(as_text(buffer.bytes()), "hello");
  EXPECT_TRUE(Buffer::copy_of({}).empty());
}

TEST(Buffer, MovesLeaveNothingBehind) {
  Buffer first = Buffer::copy_of(as_bytes("hello"));
  Buffer second = std::move(first);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): what it leaves is the point
  EXPECT_EQ(as_text(second.bytes()), "hello");
  second = Buffer::copy_of(as_bytes("other"));
  EXPECT_EQ(as_text(second.bytes()), "other");
}

TEST(BufferDeathTest, ASizePastTheCapacityIsABug) {
  Buffer buffer = Buffer::heap(10);
  buffer.set_size(10);
  EXPECT_DEATH(buffer.set_size(11), "capacity");
}

TEST(BufferPool, LeasesEachSlotOnce) {
  const auto pool = BufferPool::create(4, 8192).value();
  EXPECT_EQ(pool->region().size(), 4U * 8192);
  std::vector<Buffer> leases;
  std::set<const std::uint8_t*> places;
  for (int i = 0; i < 4; ++i) {
    leases.push_back(pool->acquire().value());
    const Buffer& lease = leases.back();
    EXPECT_EQ(lease.data(), pool->region().data() + lease.slot() * 8192);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lease.data()) % 4096, 0U);
    EXPECT_EQ(lease.capacity(), 8192U);
    EXPECT_EQ(lease.size(), 0U);
    EXPECT_EQ(lease.pool(), pool.get());
    places.insert(lease.data());
  }
  EXPECT_EQ(places.size(), 4U);
  EXPECT_EQ(pool->free_slots(), 0U);
  EXPECT_EQ(pool->try_acquire().data(), nullptr);
  leases.clear();
  EXPECT_EQ(pool->free_slots(), 4U);
}

TEST(BufferPool, GivesTheLastReturnedSlotFirst) {
  const auto pool = BufferPool::create(3, 4096).value();
  Buffer first = pool->acquire().value();
  Buffer second = pool->acquire().value();
  const int slot = first.slot();
  first = Buffer();
  EXPECT_EQ(pool->acquire().value().slot(), slot);
}

TEST(BufferPool, AMovedLeaseIsReturnedOnce) {
  const auto pool = BufferPool::create(2, 4096).value();
  {
    Buffer first = pool->acquire().value();
    Buffer second = std::move(first);
    first = pool->acquire().value();
    EXPECT_EQ(pool->free_slots(), 0U);
  }
  EXPECT_EQ(pool->free_slots(), 2U);
}

TEST(BufferPool, CancelEndsWaitingAndLaterAcquires) {
  const auto pool = BufferPool::create(1, 4096).value();
  const Buffer only = pool->acquire().value();
  Code code = Code::kInternal;
  std::thread waiter([&] {
    const Result<Buffer> lease = pool->acquire();
    if (!lease) code = lease.error().code;
  });
  pool->cancel();
  waiter.join();
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_FALSE(pool->acquire());
  EXPECT_EQ(pool->try_acquire().data(), nullptr);
}

TEST(BufferPool, WaitersShareFewSlots) {
  const auto pool = BufferPool::create(2, 4096).value();
  std::vector<std::thread> threads;
  std::vector<int> damaged(4, 0);
  for (std::size_t id = 0; id < damaged.size(); ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < 500; ++i) {
        Buffer lease = pool->acquire().value();
        std::memset(lease.data(), static_cast<int>(id), 64);
        for (int at = 0; at < 64; ++at) damaged[id] += lease.data()[at] != id;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, std::vector<int>(4, 0));
  EXPECT_EQ(pool->free_slots(), 2U);
}

}  // namespace
}  // namespace volferry::base
