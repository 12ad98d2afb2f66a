// SPDX-License-Identifier: Apache-2.0
#include "engine/session/workers.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

std::unique_ptr<Workers> make(unsigned threads) {
  Workers::Options options;
  options.threads = threads;
  auto made = Workers::create(options);
  EXPECT_TRUE(made);
  return std::move(*made);
}

TEST(Workers, DrainWaitsForAllAndForWhatTheyPost) {
  const auto workers = make(3);
  EXPECT_EQ(workers->count(), 3u);
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) {
    workers->post(Workers::Lane::kNormal, [&](Worker&) {
      ++ran;
      workers->post(Workers::Lane::kUrgent, [&](Worker&) { ++ran; });
    });
  }
  workers->drain();
  EXPECT_EQ(ran.load(), 200);
}

TEST(Workers, UrgentGoesFirst) {
  const auto workers = make(1);
  std::promise<void> go;
  std::shared_future<void> gate = go.get_future().share();
  std::vector<int> order;
  workers->post(Workers::Lane::kNormal, [gate](Worker&) { gate.wait(); });
  workers->post(Workers::Lane::kNormal, [&](Worker&) { order.push_back(2); });
  workers->post(Workers::Lane::kUrgent, [&](Worker&) { order.push_back(1); });
  go.set_value();
  workers->drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Workers, JobsOfOneKeyKeepTheirOrder) {
  const auto workers = make(3);
  std::vector<int> order[2];
  std::vector<unsigned> who;
  for (int i = 0; i < 200; ++i) {
    workers->post_to(7, [&order, i, &who](Worker& worker) {
      order[0].push_back(i);
      who.push_back(worker.index());
    });
    workers->post_to(8, [&order, i](Worker&) { order[1].push_back(i); });
  }
  workers->drain();
  std::vector<int> want(200);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(order[0], want);
  EXPECT_EQ(order[1], want);
  EXPECT_EQ(who, std::vector<unsigned>(200, 7 % 3));
}

TEST(Workers, StopDropsWhatIsQueued) {
  const auto workers = make(1);
  std::promise<void> running;
  std::promise<void> go;
  std::shared_future<void> gate = go.get_future().share();
  std::atomic<int> late{0};
  auto token = std::make_shared<int>(0);
  workers->post(Workers::Lane::kNormal, [&running, gate](Worker&) {
    running.set_value();
    gate.wait();
  });
  running.get_future().wait();
  for (int i = 0; i < 10; ++i) {
    workers->post(Workers::Lane::kNormal, [&late, token](Worker&) { ++late; });
    workers->post_to(0, [&late, token](Worker&) { ++late; });
  }
  std::thread stopper([&] { workers->stop(); });
  // The queue is emptied before the running job ends: from then on a job posted is dropped at once.
  for (;;) {
    const auto probe = std::make_shared<int>(0);
    workers->post(Workers::Lane::kNormal, [&late, probe](Worker&) { ++late; });
    if (probe.use_count() == 1) break;
    std::this_thread::yield();
  }
  go.set_value();
  stopper.join();
  EXPECT_EQ(late.load(), 0);
  EXPECT_EQ(token.use_count(), 1);
  // After it, nothing is taken any more, and nothing waits.
  workers->post(Workers::Lane::kNormal, [&late](Worker&) { ++late; });
  workers->drain();
  EXPECT_EQ(late.load(), 0);
}

TEST(Workers, ScratchGrows) {
  const auto workers = make(1);
  workers->post(Workers::Lane::kNormal, [](Worker& worker) {
    std::uint8_t* small = worker.scratch(10);
    small[9] = 1;
    std::uint8_t* large = worker.scratch(1u << 20);
    large[(1u << 20) - 1] = 1;
    EXPECT_EQ(worker.scratch(5), large);
  });
  workers->drain();
}

TEST(Workers, LaterWritesEndBeforeDrainDoes) {
  const testing::TempDir dir;
  const base::UniqueFd fd(::open(dir.at("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  auto pool = *base::BufferPool::create(4, 4096);
  Workers::Options options;
  options.threads = 1;
  options.pool = pool.get();
  auto workers = *Workers::create(options);
  int done = 0;
  int failed = 0;
  workers->post(Workers::Lane::kNormal, [&](Worker& worker) {
    for (int i = 0; i < 3; ++i) {
      base::Buffer buffer = *pool->acquire();
      std::fill_n(buffer.data(), 4096, static_cast<std::uint8_t>('a' + i));
      worker.write_later(fd.get(), static_cast<std::uint64_t>(i) * 4096, std::move(buffer), 0, 4096,
                         [&](Status status) { status ? ++done : ++failed; });
    }
    worker.write_later(-1, 0, base::Buffer::heap(4096), 0, 4096,
                       [&](Status status) { status ? ++done : ++failed; });
  });
  workers->drain();
  workers->stop();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(pool->free_slots(), 4u);
  EXPECT_EQ(testing::read_file(dir.at("f")),
            std::string(4096, 'a') + std::string(4096, 'b') + std::string(4096, 'c'));
}

}  // namespace
}  // namespace volferry::session
