// SPDX-License-Identifier: Apache-2.0
#include "engine/session/segments.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace volferry::session {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

TEST(Segments, CoverEveryByteOnce) {
  for (const std::uint64_t size : {0 * kMiB, 1 * kMiB, 16 * kMiB, 100 * kMiB + 7}) {
    std::mutex mutex;
    std::map<std::uint64_t, std::uint64_t> seen;
    ASSERT_TRUE(
        for_each_segment(4, size, 64, [&](std::uint64_t begin, std::uint64_t end, std::uint8_t*) {
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(seen.emplace(begin, end).second);
          return Status{};
        }));
    std::uint64_t at = 0;
    for (const auto& [begin, end] : seen) {
      EXPECT_EQ(begin, at);
      at = end;
    }
    EXPECT_EQ(at, size);
  }
}

TEST(Segments, EachThreadHasItsOwnScratch) {
  std::mutex mutex;
  std::map<std::uint8_t*, std::set<std::thread::id>> owners;
  ASSERT_TRUE(for_each_segment(3, 1000 * kMiB, 64,
                               [&](std::uint64_t, std::uint64_t, std::uint8_t* scratch) {
                                 scratch[63] = 1;
                                 const std::lock_guard lock(mutex);
                                 owners[scratch].insert(std::this_thread::get_id());
                                 return Status{};
                               }));
  EXPECT_LE(owners.size(), 3u);
  for (const auto& [scratch, threads] : owners) EXPECT_EQ(threads.size(), 1u);
}

TEST(Segments, AnErrorEndsIt) {
  for (const unsigned threads : {1u, 2u}) {
    std::atomic<unsigned> begun{0};
    const Status done = for_each_segment(
        threads, 1000 * kMiB, 64, [&](std::uint64_t begin, std::uint64_t, std::uint8_t*) {
          begun.fetch_add(1);
          return begin == 32 * kMiB ? fail_with(Code::kMismatch, "the third") : Status{};
        });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().context, "the third");
    if (threads == 1) {
      EXPECT_EQ(begun.load(), 3u);
    }
  }
}

}  // namespace
}  // namespace volferry::session
