// SPDX-License-Identifier: Apache-2.0
#include "engine/session/runtime.h"

#include <gtest/gtest.h>

#include "tests/unit/session/support.h"

#include "engine/transport/wire/limits.h"

namespace volferry::session {
namespace {

Result<Runtime> make(std::uint64_t memory, unsigned threads, bool remote, unsigned streams = 1) {
  SyncOptions options = testing::quick_options();
  options.memory_bytes = memory;
  options.threads = threads;
  options.streams = streams;
  base::NullLogger logger;
  return Runtime::create(options, remote, logger);
}

// Below 128 MiB the least that works takes a larger share.
TEST(Runtime, BuffersTakeAtMostHalfOfTheMemory) {
  for (const std::uint64_t mebibytes : {64u, 128u, 512u, 4096u}) {
    for (const unsigned threads : {1u, 2u, 4u}) {
      for (const bool remote : {false, true}) {
        const auto runtime = make(mebibytes << 20, threads, remote);
        ASSERT_TRUE(runtime);
        std::uint64_t bytes = runtime->work_pool->slots() * runtime->work_pool->slot_bytes();
        if (remote) bytes += runtime->receive_pool->slots() * runtime->receive_pool->slot_bytes();
        const std::uint64_t memory = mebibytes << 20;
        EXPECT_LE(bytes, mebibytes < 128 ? memory / 8 * 5 : memory / 2)
            << mebibytes << " MiB, " << threads << " threads, " << remote;
      }
    }
  }
}

// Frames in flight never wait for a slot: the credit is what the pool can hold beside one frame for
// each stream.
TEST(Runtime, CreditFitsTheReceivePool) {
  for (const std::uint64_t mebibytes : {32u, 64u, 512u, 4096u}) {
    for (const unsigned streams : {1u, 4u, 16u}) {
      const auto runtime = make(mebibytes << 20, 2, true, streams);
      ASSERT_TRUE(runtime);
      EXPECT_GE(runtime->receive_pool->slots(), runtime->data_credit / wire::kMaxBody + streams);
      EXPECT_GE(runtime->data_credit, 4 * wire::kMaxBody);
      EXPECT_GT(runtime->list_credit, wire::kMaxXattrBytes / 4);
    }
  }
}

TEST(Runtime, TooLittleMemoryIsAUsageError) {
  const auto runtime = make((32u << 20) - 1, 2, true);
  ASSERT_FALSE(runtime);
  EXPECT_EQ(runtime.error().code, Code::kUsage);
}

TEST(Runtime, ThreadsAreAsAskedOrChosen) {
  EXPECT_EQ(make(64u << 20, 3, false)->workers->count(), 3u);
  const unsigned chosen = make(64u << 20, 0, false)->workers->count();
  EXPECT_GE(chosen, 2u);
  EXPECT_LE(chosen, 8u);
  EXPECT_STREQ(make(64u << 20, 1, false)->io_name(), "threads");
}

}  // namespace
}  // namespace volferry::session
