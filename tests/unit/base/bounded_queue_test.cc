// SPDX-License-Identifier: Apache-2.0
#include "engine/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace volferry::base {
namespace {

TEST(BoundedQueue, IsFirstInFirstOut) {
  BoundedQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(i));
  EXPECT_EQ(queue.size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.pop(), i);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(BoundedQueue, AFullQueueLeavesTheItemAlone) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(queue.try_push(first));
  EXPECT_EQ(first, nullptr);
  EXPECT_FALSE(queue.try_push(second));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST(BoundedQueue, CloseRefusesPushesAndDrains) {
  BoundedQueue<int> queue(3);
  queue.push(1);
  queue.push(2);
  queue.close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.push(3));
  int item = 4;
  EXPECT_FALSE(queue.try_push(item));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.try_pop(), 2);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, AbortDropsWhatIsQueued) {
  const auto watched = std::make_shared<int>(1);
  BoundedQueue<std::shared_ptr<int>> queue(3);
  queue.push(watched);
  queue.abort();
  EXPECT_EQ(watched.use_count(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_FALSE(queue.push(watched));
}

TEST(BoundedQueue, PopForGivesUp) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.pop_for(std::chrono::milliseconds(1)), std::nullopt);
  queue.push(5);
  EXPECT_EQ(queue.pop_for(std::chrono::hours(1)), 5);
  queue.close();
  EXPECT_EQ(queue.pop_for(std::chrono::hours(1)), std::nullopt);
}

TEST(BoundedQueue, CloseWakesWaitersOnBothEnds) {
  BoundedQueue<int> full(1);
  full.push(1);
  BoundedQueue<int> empty(1);
  bool pushed = true;
  std::optional<int> popped = 1;
  std::thread pusher([&] { pushed = full.push(2); });
  std::thread popper([&] { popped = empty.pop(); });
  full.close();
  empty.close();
  pusher.join();
  popper.join();
  EXPECT_FALSE(pushed);
  EXPECT_EQ(popped, std::nullopt);
}

TEST(BoundedQueue, PassesEveryItemOnceBetweenManyThreads) {
  constexpr int kItems = 2000;
  BoundedQueue<int> queue(4);
  std::vector<std::thread> producers;
  std::vector<std::thread> consumers;
  std::vector<std::vector<int>> taken(3);
  for (auto& mine : taken) {
    consumers.emplace_back([&queue, &mine] {
      while (const auto item = queue.pop()) mine.push_back(*item);
    });
  }
  for (int first = 0; first < 2; ++first) {
    producers.emplace_back([&queue, first] {
      for (int i = first; i < kItems; i += 2) queue.push(i);
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.close();
  for (std::thread& thread : consumers) thread.join();
  std::vector<int> counts(kItems, 0);
  for (const auto& mine : taken) {
    for (const int item : mine) ++counts[static_cast<std::size_t>(item)];
  }
  EXPECT_EQ(counts, std::vector<int>(kItems, 1));
}

}  // namespace
}  // namespace volferry::base
