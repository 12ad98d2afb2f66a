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
