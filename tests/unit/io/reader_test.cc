// SPDX-License-Identifier: Apache-2.0
#include "engine/io/reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "tests/unit/io/scratch.h"

#include "engine/io/faulty_queue.h"

namespace volferry::io {
namespace {

using test::pattern;

constexpr std::size_t kSlotBytes = 16 * 1024;

// Notes what is asked of the queue that it stands before.
class RecordingQueue final : public IoQueue {
 public:
  explicit RecordingQueue(std::unique_ptr<IoQueue> inner) : inner_(std::move(inner)) {}
  void submit(IoRequest& request) override {
    asked.push_back({request.offset, request.length});
    inner_->submit(request);
    deepest = std::max(deepest, inner_->in_flight());
  }
  unsigned wait(unsigned min_complete) override { return inner_->wait(min_complete); }
  unsigned in_flight() const override { return inner_->in_flight(); }
  unsigned depth() const override { return inner_->depth(); }
  Backend backend() const override { return inner_->backend(); }

  std::vector<std::pair<std::uint64_t, std::size_t>> asked;
  unsigned deepest = 0;

 private:
  std::unique_ptr<IoQueue> inner_;
};

class ReadAheadTest : public testing::Test {
 protected:
  void SetUp() override { open(8); }

  void open(unsigned slots, FaultPlan plan = {.reorder = true, .seed = 3}) {
    queue_.reset();
    auto pool = base::BufferPool::create(slots, kSlotBytes);
    ASSERT_TRUE(pool);
    pool_ = std::move(*pool);
    auto inner = make_io_queue({.backend = Backend::kThreads, .depth = 16});
    ASSERT_TRUE(inner);
    queue_ =
        std::make_unique<RecordingQueue>(std::make_unique<FaultyQueue>(std::move(*inner), plan));
  }

  test::ScratchDir dir_;
  std::unique_ptr<base::BufferPool> pool_;
  std::unique_ptr<RecordingQueue> queue_;
};

TEST_F(ReadAheadTest, DeliversInOrderThoughCompletedOutOfOrder) {
  const auto content = pattern(50 * 10'000 + 77, 1);
  const auto fd = dir_.file("data", content);
  ReadAhead reader(*queue_, *pool_, fd.get(), 6);
  for (std::uint64_t at = 0; at < content.size(); at += 10'000) reader.add(at, 10'000);
  EXPECT_EQ(reader.pending(), 51U);
  for (std::uint64_t at = 0; at < content.size(); at += 10'000) {
    auto piece = reader.next();
    ASSERT_TRUE(piece && *piece);
    ASSERT_EQ((*piece)->offset, at);
    ASSERT_EQ((*piece)->data.size(), std::min<std::size_t>(10'000, content.size() - at));
    ASSERT_TRUE(std::equal((*piece)->data.bytes().begin(), (*piece)->data.bytes().end(),
                           content.begin() + static_cast<long>(at)));
  }
  EXPECT_EQ(reader.pending(), 0U);
  const auto end = reader.next();
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->has_value());
  EXPECT_EQ(queue_->deepest, 6U);
}

TEST_F(ReadAheadTest, TakesOnlyFreeSlotsBeyondTheFirst) {
  const auto content = pattern(20 * 1000, 2);
  const auto fd = dir_.file("data", content);
  std::vector<base::Buffer> others;
  for (int i = 0; i < 7; ++i) others.push_back(pool_->try_acquire());
  ReadAhead reader(*queue_, *pool_, fd.get(), 6);
  for (std::uint64_t i = 0; i < 20; ++i) reader.add(i * 1000, 1000);
  EXPECT_EQ(queue_->asked.size(), 1U);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto piece = reader.next();
    ASSERT_TRUE(piece && *piece);
    EXPECT_EQ((*piece)->offset, i * 1000);
  }
  EXPECT_EQ(queue_->deepest, 1U);
}

TEST_F(ReadAheadTest, FirstPieceWaitsForASlotOfAnotherThread) {
  const auto fd = dir_.file("data", pattern(1000, 3));
  std::vector<base::Buffer> others;
  for (int i = 0; i < 8; ++i) others.push_back(pool_->try_acquire());
  ReadAhead reader(*queue_, *pool_, fd.get(), 4);
  reader.add(0, 1000);
  EXPECT_TRUE(queue_->asked.empty());
  std::thread returner([&] { others.clear(); });
  const auto piece = reader.next();
  returner.join();
  ASSERT_TRUE(piece && *piece);
  EXPECT_EQ((*piece)->data.size(), 1000U);
}

TEST_F(ReadAheadTest, FirstPieceRunsTheQueueToFreeSlotsOfItsOwnThread) {
  // All slots are held by writes in the same queue: only their callbacks free them.
  const auto fd = dir_.file("data", pattern(1000, 4));
  const auto out = dir_.file("out", {});
  std::vector<base::Buffer> held(8);
  std::vector<IoRequest> writes(8);
  for (std::size_t i = 0; i < 8; ++i) {
    held[i] = pool_->try_acquire();
    std::fill_n(held[i].data(), kSlotBytes, 1);
    writes[i] = {.op = IoOp::kWrite,
                 .fd = out.get(),
                 .offset = i * kSlotBytes,
                 .data = held[i].data(),
                 .length = kSlotBytes,
                 .slot = held[i].slot(),
                 .done = [&, i](IoRequest&, Result<std::size_t>) { held[i] = {}; }};
    queue_->submit(writes[i]);
  }
  ReadAhead reader(*queue_, *pool_, fd.get(), 4);
  reader.add(0, 1000);
  const auto piece = reader.next();
  ASSERT_TRUE(piece && *piece);
  EXPECT_EQ((*piece)->data.size(), 1000U);
  queue_->drain();
}

TEST_F(ReadAheadTest, CancelledPoolIsAnError) {
  const auto fd = dir_.file("data", pattern(1000, 5));
  ReadAhead reader(*queue_, *pool_, fd.get(), 4);
  pool_->cancel();
  reader.add(0, 1000);
  const auto piece = reader.next();
  ASSERT_FALSE(piece);
  EXPECT_EQ(piece.error().code, Code::kCancelled);
}

TEST_F(ReadAheadTest, ErrorNamesTheOffsetAndTheRestGoesOn) {
  open(8, {.fault = Fault::kFail, .at_operation = 1, .os_errno = EIO});
  const auto fd = dir_.file("data", pattern(3000, 6));
  ReadAhead reader(*queue_, *pool_, fd.get(), 4);
  for (std::uint64_t i = 0; i < 3; ++i) reader.add(i * 1000, 1000);
  EXPECT_TRUE(reader.next());
  const auto failed = reader.next();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().os_errno, EIO);
  EXPECT_NE(failed.error().context.find("@1000+1000"), std::string::npos);
  const auto last = reader.next();
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((*last)->offset, 2000U);
  EXPECT_EQ(pool_->free_slots(), 7U);
}

TEST_F(ReadAheadTest, DestructorWaitsAndGivesSlotsBack) {
  const auto fd = dir_.file("data", pattern(100'000, 7));
  {
    ReadAhead reader(*queue_, *pool_, fd.get(), 8);
    for (std::uint64_t i = 0; i < 8; ++i) reader.add(i * 1000, 1000);
    EXPECT_EQ(pool_->free_slots(), 0U);
  }
  EXPECT_EQ(queue_->in_flight(), 0U);
  EXPECT_EQ(pool_->free_slots(), 8U);
}

TEST_F(ReadAheadTest, DirectLengthsAreRoundedUpAndTheTailIsShort) {
  const auto content = pattern(2 * kSlotBytes + 5001, 8);
  dir_.file("data", content);
  const base::UniqueFd fd(::open((dir_.path() + "/data").c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!fd) GTEST_SKIP() << "no direct I/O in the working directory";
  ReadAhead reader(*queue_, *pool_, fd.get(), 4);
  reader.add(0, kSlotBytes);
  reader.add(kSlotBytes, 1000);
  reader.add(2 * kSlotBytes, 5001);
  reader.add(2 * kSlotBytes, kSlotBytes);
  const std::vector<std::size_t> sizes{kSlotBytes, 1000, 5001, 5001};
  for (const std::size_t size : sizes) {
    const auto piece = reader.next();
    ASSERT_TRUE(piece) << piece.error().message();
    ASSERT_TRUE(*piece);
    ASSERT_EQ((*piece)->data.size(), size);
    EXPECT_TRUE(std::equal((*piece)->data.bytes().begin(), (*piece)->data.bytes().end(),
                           content.begin() + static_cast<long>((*piece)->offset)));
  }
  const std::vector<std::pair<std::uint64_t, std::size_t>> asked{
      {0, kSlotBytes}, {kSlotBytes, 4096}, {2 * kSlotBytes, 8192}, {2 * kSlotBytes, kSlotBytes}};
  EXPECT_EQ(queue_->asked, asked);
}

}  // namespace
}  // namespace volferry::io
