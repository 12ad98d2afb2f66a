// SPDX-License-Identifier: Apache-2.0
#include "engine/io/faulty_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <vector>

#include "tests/unit/io/scratch.h"

namespace volferry::io {
namespace {

using test::content_of;
using test::pattern;

constexpr std::size_t kPiece = 8192;

class FaultyQueueTest : public testing::Test {
 protected:
  void open(FaultPlan plan, unsigned depth = 4) {
    auto inner = make_io_queue({.backend = Backend::kThreads, .depth = depth});
    ASSERT_TRUE(inner);
    queue_ = std::make_unique<FaultyQueue>(std::move(*inner), plan);
  }

  // Runs `count` operations, piece i at offset i * kPiece; outcomes by piece, and the order of
  // completion.
  std::vector<Result<std::size_t>> run(IoOp op, int fd, std::uint8_t* data, std::size_t count) {
    std::vector<Result<std::size_t>> outcomes(count, Result<std::size_t>(0));
    std::vector<IoRequest> requests(count);
    order_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      requests[i] = {.op = op,
                     .fd = fd,
                     .offset = i * kPiece,
                     .data = data + i * kPiece,
                     .length = kPiece,
                     .slot = -1,
                     .done = [&, i](IoRequest&, Result<std::size_t> outcome) {
                       outcomes[i] = std::move(outcome);
                       order_.push_back(i);
                     }};
      queue_->submit(requests[i]);
    }
    queue_->drain();
    return outcomes;
  }

  test::ScratchDir dir_;
  std::unique_ptr<FaultyQueue> queue_;
  std::vector<std::size_t> order_;
};

TEST_F(FaultyQueueTest, FailsTheNthOperationOnly) {
  open({.fault = Fault::kFail, .at_operation = 2, .os_errno = EIO});
  const auto fd = dir_.file("data", {});
  auto bytes = pattern(5 * kPiece, 1);
  const auto outcomes = run(IoOp::kWrite, fd.get(), bytes.data(), 5);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(outcomes[i].has_value(), i != 2) << i;
  EXPECT_EQ(outcomes[2].error().os_errno, EIO);
  EXPECT_EQ(outcomes[2].error().context.substr(0, 6), "pwrite");
  std::fill_n(bytes.begin() + 2 * kPiece, kPiece, 0);
  EXPECT_EQ(content_of(fd.get()), bytes);
}

TEST_F(FaultyQueueTest, ShortensAReadAndTearsAWrite) {
  auto bytes = pattern(3 * kPiece, 2);
  const auto fd = dir_.file("data", bytes);
  open({.fault = Fault::kShorten, .at_operation = 1});
  std::vector<std::uint8_t> read(bytes.size());
  const auto outcomes = run(IoOp::kRead, fd.get(), read.data(), 3);
  EXPECT_EQ(outcomes[0], kPiece);
  EXPECT_EQ(outcomes[1], kPiece / 2);
  EXPECT_EQ(outcomes[2], kPiece);

  open({.fault = Fault::kShorten, .at_operation = 1, .os_errno = ENOSPC});
  auto fresh = pattern(3 * kPiece, 3);
  const auto writes = run(IoOp::kWrite, fd.get(), fresh.data(), 3);
  ASSERT_FALSE(writes[1]);
  EXPECT_EQ(writes[1].error().os_errno, ENOSPC);
  std::copy_n(bytes.begin() + kPiece + kPiece / 2, kPiece / 2, fresh.begin() + kPiece + kPiece / 2);
  EXPECT_EQ(content_of(fd.get()), fresh);
}

TEST_F(FaultyQueueTest, DiskStaysFullUntilHealed) {
  open({.fault = Fault::kDiskFull, .at_operation = 1});
  const auto fd = dir_.file("data", {});
  auto bytes = pattern(3 * kPiece, 4);
  const auto outcomes = run(IoOp::kWrite, fd.get(), bytes.data(), 3);
  EXPECT_TRUE(outcomes[0]);
  EXPECT_EQ(outcomes[1].error().os_errno, ENOSPC);
  EXPECT_EQ(outcomes[2].error().os_errno, ENOSPC);
  EXPECT_TRUE(run(IoOp::kRead, fd.get(), bytes.data(), 1)[0]);
  queue_->heal();
  EXPECT_TRUE(run(IoOp::kWrite, fd.get(), bytes.data(), 1)[0]);
  EXPECT_EQ(queue_->operations(), 5U);
}

TEST_F(FaultyQueueTest, ReordersAndCompletesEachOnce) {
  constexpr std::size_t kCount = 200;
  constexpr std::uint64_t kSeed = 7;
  open({.reorder = true, .seed = kSeed}, 16);
  const auto bytes = pattern(kCount * kPiece, 5);
  const auto fd = dir_.file("data", bytes);
  std::vector<std::uint8_t> read(bytes.size());
  run(IoOp::kRead, fd.get(), read.data(), kCount);
  EXPECT_EQ(read, bytes);
  EXPECT_FALSE(std::is_sorted(order_.begin(), order_.end())) << "seed " << kSeed;
  std::sort(order_.begin(), order_.end());
  std::vector<std::size_t> all(kCount);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order_, all);
}

}  // namespace
}  // namespace volferry::io
