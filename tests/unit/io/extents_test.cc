// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/unit/io/file_systems.h"

#include "engine/io/file.h"

namespace volferry::io {
namespace {

using test::pattern;

constexpr std::uint64_t kMiB = 1 << 20;

class ExtentsTest : public test::FileSystemTest {};

TEST_P(ExtentsTest, FindsDataBetweenHoles) {
  const auto fd = dir_->sparse("data", 16 * kMiB);
  const auto bytes = pattern(kMiB, 1);
  ASSERT_TRUE(write_full(fd.get(), bytes.data(), bytes.size(), 2 * kMiB));
  ASSERT_TRUE(write_full(fd.get(), bytes.data(), bytes.size(), 8 * kMiB));
  ASSERT_EQ(::fsync(fd.get()), 0);
  EXPECT_EQ(next_data(fd.get(), 0, 16 * kMiB), (Extent{2 * kMiB, 3 * kMiB}));
  EXPECT_EQ(next_data(fd.get(), 2 * kMiB + 5, 16 * kMiB), (Extent{2 * kMiB + 5, 3 * kMiB}));
  EXPECT_EQ(next_data(fd.get(), 3 * kMiB, 16 * kMiB), (Extent{8 * kMiB, 9 * kMiB}));
  EXPECT_EQ(next_data(fd.get(), 8 * kMiB, 8 * kMiB + 100), (Extent{8 * kMiB, 8 * kMiB + 100}));
  EXPECT_EQ(next_data(fd.get(), 3 * kMiB, 8 * kMiB), std::nullopt);
  EXPECT_EQ(next_data(fd.get(), 9 * kMiB, 16 * kMiB), std::nullopt);
}

TEST_P(ExtentsTest, EmptyAndHoleOnly) {
  const auto empty = dir_->file("empty", {});
  EXPECT_EQ(next_data(empty.get(), 0, 0), std::nullopt);
  const auto hole = dir_->sparse("hole", kMiB);
  EXPECT_EQ(next_data(hole.get(), 0, kMiB), std::nullopt);
  // The size may be stale: the file has shrunk meanwhile.
  EXPECT_EQ(next_data(hole.get(), 2 * kMiB, 4 * kMiB), std::nullopt);
}

TEST_P(ExtentsTest, AllocatedIsAlsoWhatWasNeverWritten) {
  const auto fd = dir_->sparse("data", 16 * kMiB);
  ASSERT_TRUE(tells_allocation(fd.get()));
  EXPECT_EQ(next_allocated(fd.get(), 0, 16 * kMiB), std::nullopt);
  const auto bytes = pattern(kMiB, 1);
  ASSERT_TRUE(write_full(fd.get(), bytes.data(), bytes.size(), 2 * kMiB));
  // Not on disk yet, and told all the same.
  EXPECT_EQ(next_allocated(fd.get(), 0, 16 * kMiB), (Extent{2 * kMiB, 3 * kMiB}));
  EXPECT_EQ(next_allocated(fd.get(), 2 * kMiB + 4096, 16 * kMiB),
            (Extent{2 * kMiB + 4096, 3 * kMiB}));
  EXPECT_EQ(next_allocated(fd.get(), 0, 2 * kMiB + 4096), (Extent{2 * kMiB, 2 * kMiB + 4096}));
  EXPECT_EQ(next_allocated(fd.get(), 3 * kMiB, 16 * kMiB), std::nullopt);
  if (GetParam() == "tmpfs") return;  // its fallocate leaves holes until pages are touched
  ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 3 * kMiB, 4 * kMiB), 0);
  EXPECT_EQ(next_allocated(fd.get(), 0, 16 * kMiB), (Extent{2 * kMiB, 7 * kMiB}));
}

TEST_P(ExtentsTest, ManyExtentsJoinAndStayApart) {
  const auto fd = dir_->sparse("data", 16 * kMiB);
  const auto bytes = pattern(64 << 10, 1);
  for (std::uint64_t at = 0; at < 8 * kMiB; at += 128 << 10)
    ASSERT_TRUE(write_full(fd.get(), bytes.data(), bytes.size(), at));
  std::uint64_t count = 0;
  for (std::uint64_t at = 0; at < 16 * kMiB; ++count) {
    const auto extent = next_allocated(fd.get(), at, 16 * kMiB);
    ASSERT_TRUE(extent);
    if (!*extent) break;
    EXPECT_EQ((*extent)->begin, count * (128 << 10));
    EXPECT_EQ((*extent)->end, count * (128 << 10) + (64 << 10));
    at = (*extent)->end;
  }
  EXPECT_EQ(count, 64u);
  for (std::uint64_t at = 64 << 10; at < 8 * kMiB; at += 128 << 10)
    ASSERT_TRUE(write_full(fd.get(), bytes.data(), bytes.size(), at));
  EXPECT_EQ(next_allocated(fd.get(), 0, 16 * kMiB), (Extent{0, 8 * kMiB}));
}

TEST_P(ExtentsTest, SizeOfAFile) {
  const auto fd = dir_->sparse("data", (std::uint64_t{5} << 30) + 1);
  EXPECT_EQ(data_size(fd.get()), (std::uint64_t{5} << 30) + 1);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, ExtentsTest, test::all_file_systems(),
                         test::file_system_name);

TEST(Extents, DeviceIsOneExtent) {
  std::string why;
  const auto device = test::LoopDevice::make(4 * kMiB, why);
  if (device == nullptr) GTEST_SKIP() << why;
  const auto fd = device->open(O_RDONLY);
  EXPECT_EQ(data_size(fd.get()), 4 * kMiB);
  EXPECT_EQ(next_data(fd.get(), 4096, 4 * kMiB), (Extent{4096, 4 * kMiB}));
  EXPECT_EQ(next_data(fd.get(), 4 * kMiB, 4 * kMiB), std::nullopt);
}

TEST(Extents, OtherKindsAreRefused) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  EXPECT_EQ(data_size(pipe[0]).error().code, Code::kUnsupported);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_EQ(data_size(-1).error().os_errno, EBADF);
  EXPECT_EQ(next_data(-1, 0, 1).error().os_errno, EBADF);
}

}  // namespace
}  // namespace volferry::io
