// SPDX-License-Identifier: Apache-2.0
// One suite over every backend, and over a queue that reorders completions.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/io/scratch.h"

#include "engine/io/faulty_queue.h"
#include "engine/io/file.h"
#include "engine/io/queue.h"

namespace volferry::io {
namespace {

using test::content_of;
using test::pattern;
using test::ScratchDir;

constexpr unsigned kSlots = 32;
constexpr std::size_t kSlotBytes = 64 * 1024;
constexpr std::uint64_t kSeed = 20240607;

struct Setup {
  Backend backend = Backend::kThreads;
  bool reorder = false;
};

std::string setup_name(const testing::TestParamInfo<Setup>& info) {
  std::string name(backend_name(info.param.backend));
  std::erase(name, '-');
  return name + (info.param.reorder ? "_reordered" : "");
}

class QueueConformance : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    auto pool = base::BufferPool::create(kSlots, kSlotBytes);
    ASSERT_TRUE(pool);
    pool_ = std::move(*pool);
    if (GetParam().backend != Backend::kThreads) {
      const auto probed = probe_backend(BackendChoice::kUring);
      if (!probed) GTEST_SKIP() << probed.error().message();
    }
    queue_ = make(8);
    ASSERT_NE(queue_, nullptr);
  }

  std::unique_ptr<IoQueue> make(unsigned depth) {
    auto queue = make_io_queue(
        {.backend = GetParam().backend, .depth = depth, .pool = pool_.get(), .threads = 2});
    EXPECT_TRUE(queue) << queue.error().message();
    if (!queue) return nullptr;
    EXPECT_EQ((*queue)->backend(), GetParam().backend);
    if (!GetParam().reorder) return std::move(*queue);
    return std::make_unique<FaultyQueue>(std::move(*queue),
                                         FaultPlan{.reorder = true, .seed = kSeed});
  }

  // Carries out one request and returns what its callback was given.
  Result<std::size_t> run(IoRequest request) {
    Result<std::size_t> outcome = fail_with(Code::kInternal, "no callback");
    int calls = 0;
    request.done = [&](IoRequest&, Result<std::size_t> result) {
      outcome = std::move(result);
      ++calls;
    };
    queue_->submit(request);
    queue_->drain();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(queue_->in_flight(), 0U);
    return outcome;
  }

  Result<std::size_t> run(IoOp op, int fd, std::uint64_t offset, std::uint8_t* data,
                          std::size_t length, int slot = -1) {
    return run(
        {.op = op, .fd = fd, .offset = offset, .data = data, .length = length, .slot = slot});
  }

  ScratchDir dir_;
  std::unique_ptr<base::BufferPool> pool_;
  std::unique_ptr<IoQueue> queue_;
};

TEST_P(QueueConformance, ReadsAllSizesAtAllOffsets) {
  const auto content = pattern(300'001, 1);
  const auto fd = dir_.file("data", content);
  for (const std::size_t length : {0UL, 1UL, 511UL, 4096UL, 4097UL, 65'536UL, 200'000UL}) {
    for (const std::uint64_t offset : {0UL, 1UL, 4095UL, 100'000UL}) {
      std::vector<std::uint8_t> read(length);
      const auto outcome = run(IoOp::kRead, fd.get(), offset, read.data(), length);
      ASSERT_TRUE(outcome) << outcome.error().message();
      EXPECT_EQ(*outcome, length);
      EXPECT_TRUE(std::equal(read.begin(), read.end(), content.begin() + static_cast<long>(offset)))
          << length << " @" << offset;
    }
  }
}

TEST_P(QueueConformance, WritesAllSizesAtAllOffsets) {
  std::vector<std::uint8_t> expected(300'001);
  const auto fd = dir_.file("data", expected);
  std::uint64_t seed = 10;
  for (const std::size_t length : {0UL, 1UL, 511UL, 4096UL, 4097UL, 65'536UL, 200'000UL}) {
    for (const std::uint64_t offset : {0UL, 1UL, 4095UL, 100'000UL}) {
      auto bytes = pattern(length, ++seed);
      const auto outcome = run(IoOp::kWrite, fd.get(), offset, bytes.data(), length);
      ASSERT_TRUE(outcome) << outcome.error().message();
      EXPECT_EQ(*outcome, length);
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<long>(offset));
      ASSERT_EQ(content_of(fd.get()), expected);
    }
  }
  EXPECT_TRUE(run({.op = IoOp::kSync, .fd = fd.get()}));
}

TEST_P(QueueConformance, ReadPastTheEndIsShort) {
  const auto content = pattern(10'000, 2);
  const auto fd = dir_.file("data", content);
  std::vector<std::uint8_t> read(8192);
  EXPECT_EQ(run(IoOp::kRead, fd.get(), 4096, read.data(), read.size()), 10'000 - 4096);
  EXPECT_EQ(run(IoOp::kRead, fd.get(), 10'000, read.data(), read.size()), 0);
  EXPECT_EQ(run(IoOp::kRead, fd.get(), 1 << 20, read.data(), read.size()), 0);
}

TEST_P(QueueConformance, SlotAndHeapMemoryMix) {
  const auto content = pattern(kSlots * 5000, 3);
  const auto fd = dir_.file("data", content);
  std::vector<base::Buffer> buffers;
  std::deque<IoRequest> requests;
  unsigned done = 0;
  for (unsigned i = 0; i < kSlots; ++i) {
    buffers.push_back(i % 3 == 0 ? base::Buffer::heap(5000) : pool_->try_acquire());
    ASSERT_NE(buffers.back().data(), nullptr);
    requests.push_back({.op = IoOp::kRead,
                        .fd = fd.get(),
                        .offset = i * 5000,
                        // Not at the start of the slot either.
                        .data = buffers.back().data(),
                        .length = 5000,
                        .slot = buffers.back().slot(),
                        .done = [&](IoRequest&, Result<std::size_t> outcome) {
                          EXPECT_EQ(outcome, 5000);
                          ++done;
                        }});
    queue_->submit(requests.back());
    EXPECT_LE(queue_->in_flight(), queue_->depth());
  }
  queue_->drain();
  EXPECT_EQ(done, kSlots);
  for (unsigned i = 0; i < kSlots; ++i) {
    EXPECT_TRUE(std::equal(buffers[i].data(), buffers[i].data() + 5000, content.begin() + i * 5000))
        << i;
  }
  // And out of the slots again, at an odd place inside.
  const auto copy = dir_.file("copy", {});
  for (unsigned i = 0; i < kSlots; ++i) {
    EXPECT_EQ(
        run(IoOp::kWrite, copy.get(), i * 4990, buffers[i].data() + 10, 4990, buffers[i].slot()),
        4990);
  }
  const auto copied = content_of(copy.get());
  for (unsigned i = 0; i < kSlots; ++i) {
    EXPECT_TRUE(std::equal(copied.begin() + i * 4990, copied.begin() + (i + 1) * 4990,
                           content.begin() + i * 5000 + 10))
        << i;
  }
}

TEST_P(QueueConformance, ErrorsCarryErrnoAndPlace) {
  std::vector<std::uint8_t> bytes(4096);
  const auto bad = run(IoOp::kRead, -1, 8192, bytes.data(), bytes.size());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kSystem);
  EXPECT_EQ(bad.error().os_errno, EBADF);
  EXPECT_EQ(bad.error().context, "pread fd -1 @8192+4096");

  dir_.file("data", bytes);
  const base::UniqueFd read_only(::open((dir_.path() + "/data").c_str(), O_RDONLY | O_CLOEXEC));
  const auto refused = run(IoOp::kWrite, read_only.get(), 0, bytes.data(), bytes.size());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().os_errno, EBADF);
  EXPECT_EQ(refused.error().context.substr(0, 6), "pwrite");

  const auto sync = run({.op = IoOp::kSync, .fd = -1});
  ASSERT_FALSE(sync);
  EXPECT_EQ(sync.error().os_errno, EBADF);
}

TEST_P(QueueConformance, FullDevice) {
  const base::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) GTEST_SKIP() << "no /dev/full";
  std::vector<std::uint8_t> bytes(4096);
  const auto outcome = run(IoOp::kWrite, full.get(), 0, bytes.data(), bytes.size());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().os_errno, ENOSPC);
}

TEST_P(QueueConformance, WriteThatOnlyPartlyFitsFails) {
  std::string why;
  const auto tmpfs = test::TinyTmpfs::make(256 * 1024, why);
  if (tmpfs == nullptr) GTEST_SKIP() << why;
  const base::UniqueFd fd(
      ::open((tmpfs->path() + "/data").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  auto bytes = pattern(1 << 20, 4);
  const auto outcome = run(IoOp::kWrite, fd.get(), 0, bytes.data(), bytes.size());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().os_errno, ENOSPC);
}

TEST_P(QueueConformance, ManyMoreRequestsThanDepth) {
  constexpr unsigned kRequests = 1000;
  std::vector<std::uint8_t> content = pattern(kRequests * 100, 5);
  const auto fd = dir_.file("data", {});
  std::vector<IoRequest> requests(kRequests);
  std::vector<int> calls(kRequests);
  for (unsigned i = 0; i < kRequests; ++i) {
    requests[i] = {.op = IoOp::kWrite,
                   .fd = fd.get(),
                   .offset = i * 100,
                   .data = &content[i * 100],
                   .length = 100,
                   .slot = -1,
                   .done = [&calls, i](IoRequest&, Result<std::size_t> outcome) {
                     EXPECT_EQ(outcome, 100);
                     ++calls[i];
                   }};
    queue_->submit(requests[i]);
    ASSERT_LE(queue_->in_flight(), queue_->depth());
  }
  queue_->drain();
  EXPECT_EQ(calls, std::vector<int>(kRequests, 1));
  EXPECT_EQ(content_of(fd.get()), content);
}

TEST_P(QueueConformance, WaitRunsAtLeastWhatIsAskedAndNoMoreThanThereIs) {
  const auto fd = dir_.file("data", pattern(4096, 6));
  std::vector<std::uint8_t> memory(8 * 512);
  std::vector<IoRequest> requests(8);
  unsigned ran = 0;
  for (unsigned i = 0; i < 8; ++i) {
    requests[i] = {.fd = fd.get(),
                   .offset = i * 512,
                   .data = &memory[i * 512],
                   .length = 512,
                   .done = [&](IoRequest&, Result<std::size_t>) { ++ran; }};
    queue_->submit(requests[i]);
  }
  EXPECT_EQ(queue_->wait(0), ran);
  const unsigned before = ran;
  const unsigned got = queue_->wait(3);
  EXPECT_EQ(got, ran - before);
  EXPECT_GE(got, std::min(3U, 8 - before));
  queue_->wait(100);
  EXPECT_EQ(ran, 8U);
  EXPECT_EQ(queue_->wait(5), 0U);
}

TEST_P(QueueConformance, CallbackSubmitsTheSameRequestAgain) {
  const auto content = pattern(1 << 20, 7);
  const auto fd = dir_.file("data", content);
  std::vector<std::uint8_t> read(content.size());
  std::vector<IoRequest> chains(queue_->depth());
  // Chain i reads every depth-th piece of 64 bytes: thousands of callbacks, each of which submits
  // the next.
  const std::uint64_t stride = 64 * chains.size();
  for (std::size_t i = 0; i < chains.size(); ++i) {
    chains[i] = {.fd = fd.get(), .offset = i * 64, .data = &read[i * 64], .length = 64};
    chains[i].done = [&](IoRequest& request, Result<std::size_t> outcome) {
      EXPECT_EQ(outcome, 64);
      if (request.offset + stride >= content.size()) return;
      request.offset += stride;
      request.data += stride;
      queue_->submit(request);
    };
    queue_->submit(chains[i]);
  }
  queue_->drain();
  EXPECT_EQ(read, content);
}

TEST_P(QueueConformance, CallbackSubmitsMoreThanDepth) {
  // Each callback starts two more at a queue of depth 2, nested calls would overflow the stack long
  // before the end.
  queue_ = make(2);
  constexpr unsigned kTotal = 20'000;
  const auto fd = dir_.file("data", pattern(64, 8));
  std::vector<std::uint8_t> memory(kTotal * 64);
  std::deque<IoRequest> requests;
  unsigned done = 0;
  unsigned nested = 0;
  unsigned deepest = 0;
  std::function<void()> start = [&] {
    if (requests.size() >= kTotal) return;
    auto& request = requests.emplace_back();
    request = {.fd = fd.get(), .data = &memory[(requests.size() - 1) * 64], .length = 64};
    request.done = [&](IoRequest&, Result<std::size_t> outcome) {
      EXPECT_EQ(outcome, 64);
      ++done;
      deepest = std::max(deepest, ++nested);
      start();
      start();
      --nested;
    };
    queue_->submit(request);
  };
  start();
  queue_->drain();
  EXPECT_EQ(done, kTotal);
  EXPECT_EQ(deepest, 1U);
}

TEST_P(QueueConformance, CallbackMayWait) {
  const auto fd = dir_.file("data", pattern(4096, 9));
  std::vector<std::uint8_t> memory(8 * 64);
  std::vector<IoRequest> requests(8);
  std::vector<int> calls(8);
  for (unsigned i = 0; i < 8; ++i) {
    requests[i] = {.fd = fd.get(), .offset = i * 64, .data = &memory[i * 64], .length = 64};
    requests[i].done = [&, i](IoRequest&, Result<std::size_t>) {
      ++calls[i];
      if (i == 0) queue_->drain();
    };
    queue_->submit(requests[i]);
  }
  queue_->drain();
  EXPECT_EQ(calls, std::vector<int>(8, 1));
}

TEST_P(QueueConformance, CallbackMayDestroyItsRequest) {
  const auto fd = dir_.file("data", pattern(4096, 9));
  std::vector<std::uint8_t> memory(20 * 64);
  std::vector<std::unique_ptr<IoRequest>> owned;
  for (std::size_t i = 0; i < 20; ++i) {
    auto& request = *owned.emplace_back(std::make_unique<IoRequest>());
    request = {.fd = fd.get(), .data = &memory[i * 64], .length = 64};
    request.done = [&](IoRequest& done, Result<std::size_t>) {
      std::erase_if(owned, [&](const auto& each) { return each.get() == &done; });
    };
    queue_->submit(request);
  }
  queue_->drain();
  EXPECT_TRUE(owned.empty());
}

TEST_P(QueueConformance, DestructorWaitsForWhatIsInFlight) {
  const auto content = pattern(8 * 100'000, 11);
  const auto fd = dir_.file("data", {});
  std::vector<IoRequest> requests(8);
  unsigned done = 0;
  for (unsigned i = 0; i < 8; ++i) {
    requests[i] = {.op = IoOp::kWrite,
                   .fd = fd.get(),
                   .offset = i * 100'000,
                   .data = const_cast<std::uint8_t*>(&content[i * 100'000]),
                   .length = 100'000,
                   .slot = -1,
                   .done = [&](IoRequest&, Result<std::size_t> outcome) {
                     EXPECT_EQ(outcome, 100'000);
                     ++done;
                   }};
    queue_->submit(requests[i]);
  }
  queue_.reset();
  EXPECT_EQ(done, 8U);
  EXPECT_EQ(content_of(fd.get()), content);
}

TEST_P(QueueConformance, DirectFile) {
  const auto content = pattern(3 * kSlotBytes + 5000, 12);
  dir_.file("data", content);
  const base::UniqueFd fd(::open((dir_.path() + "/data").c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  if (!fd) GTEST_SKIP() << "no direct I/O in the working directory";
  auto buffer = pool_->try_acquire();
  for (std::uint64_t at = 0; at < content.size(); at += kSlotBytes) {
    const std::size_t expected = std::min<std::size_t>(kSlotBytes, content.size() - at);
    // The last one is short, and its end is not aligned.
    ASSERT_EQ(run(IoOp::kRead, fd.get(), at, buffer.data(), kSlotBytes, buffer.slot()), expected);
    ASSERT_TRUE(std::equal(buffer.data(), buffer.data() + expected,
                           content.begin() + static_cast<long>(at)));
  }
  const auto fresh = pattern(kSlotBytes, 13);
  std::copy(fresh.begin(), fresh.end(), buffer.data());
  ASSERT_EQ(run(IoOp::kWrite, fd.get(), kSlotBytes, buffer.data(), kSlotBytes, buffer.slot()),
            kSlotBytes);
  std::vector<std::uint8_t> expected = content;
  std::copy(fresh.begin(), fresh.end(), expected.begin() + kSlotBytes);
  ASSERT_TRUE(set_direct(fd.get(), false));
  EXPECT_EQ(content_of(fd.get()), expected);
  ASSERT_TRUE(set_direct(fd.get(), true));

  const auto unaligned = run(IoOp::kRead, fd.get(), 1, buffer.data(), kSlotBytes, buffer.slot());
  ASSERT_FALSE(unaligned);
  EXPECT_EQ(unaligned.error().os_errno, EINVAL);
}

TEST_P(QueueConformance, DirectBlockDevice) {
  std::string why;
  const auto device = test::LoopDevice::make(1 << 20, why);
  if (device == nullptr) GTEST_SKIP() << why;
  const auto fd = device->open(O_RDWR | O_DIRECT);
  ASSERT_TRUE(fd);
  auto buffer = pool_->try_acquire();
  const auto bytes = pattern(kSlotBytes, 14);
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  const std::uint64_t last = (1 << 20) - kSlotBytes / 2;
  EXPECT_EQ(run(IoOp::kWrite, fd.get(), 4096, buffer.data(), kSlotBytes, buffer.slot()),
            kSlotBytes);
  EXPECT_EQ(run(IoOp::kWrite, fd.get(), last, buffer.data(), kSlotBytes / 2, buffer.slot()),
            kSlotBytes / 2);
  // Past the end nothing fits, and a read stops there.
  const auto past = run(IoOp::kWrite, fd.get(), last, buffer.data(), kSlotBytes, buffer.slot());
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().os_errno, ENOSPC);
  std::fill_n(buffer.data(), kSlotBytes, 0);
  EXPECT_EQ(run(IoOp::kRead, fd.get(), last, buffer.data(), kSlotBytes, buffer.slot()),
            kSlotBytes / 2);
  EXPECT_TRUE(std::equal(buffer.data(), buffer.data() + kSlotBytes / 2, bytes.begin()));
  EXPECT_EQ(run(IoOp::kRead, fd.get(), 4096, buffer.data(), kSlotBytes, buffer.slot()), kSlotBytes);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.data()));
  EXPECT_TRUE(run({.op = IoOp::kSync, .fd = fd.get()}));
}

INSTANTIATE_TEST_SUITE_P(Backends, QueueConformance,
                         testing::Values(Setup{Backend::kUringFixed}, Setup{Backend::kUring},
                                         Setup{Backend::kThreads}, Setup{Backend::kUring, true},
                                         Setup{Backend::kThreads, true}),
                         setup_name);

}  // namespace
}  // namespace volferry::io
