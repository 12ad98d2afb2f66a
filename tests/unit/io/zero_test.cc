// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <tuple>

#include "tests/unit/io/file_systems.h"

#include "engine/io/file.h"

namespace volferry::io {
namespace {

using test::allocated_bytes;
using test::content_of;
using test::pattern;

constexpr std::uint64_t kMiB = 1 << 20;

struct Range {
  std::uint64_t offset;
  std::uint64_t length;
};
constexpr Range kRanges[] = {
    {0, 4096},      {4096, 65'536}, {1, 1},        {511, 513},       {4095, 2},
    {100, 300'000}, {512, 512},     {0, 3 * kMiB}, {kMiB - 1, kMiB}, {2 * kMiB + 7, kMiB},
};

std::vector<std::uint8_t> zeroed(std::vector<std::uint8_t> bytes, Range range) {
  const auto begin = std::min<std::uint64_t>(range.offset, bytes.size());
  const auto end = std::min<std::uint64_t>(begin + range.length, bytes.size());
  std::fill(bytes.begin() + static_cast<long>(begin), bytes.begin() + static_cast<long>(end), 0);
  return bytes;
}

class ZeroTest : public test::FileSystemTest {};

TEST_P(ZeroTest, ZeroesExactlyTheRange) {
  for (const auto mode : {ZeroMode::kHole, ZeroMode::kAllocated}) {
    for (const Range range : kRanges) {
      const auto content = pattern(2 * kMiB + 777, 1);
      const auto fd = dir_->file("data", content);
      const auto status = zero_range(fd.get(), range.offset, range.length, mode);
      ASSERT_TRUE(status) << status.error().message();
      ASSERT_EQ(content_of(fd.get()), zeroed(content, range))
          << range.offset << "+" << range.length;
    }
  }
}

TEST_P(ZeroTest, HoleIsDeallocated) {
  const auto fd = dir_->file("data", pattern(4 * kMiB, 2));
  EXPECT_GE(allocated_bytes(fd.get()), 4 * kMiB);
  ASSERT_TRUE(zero_range(fd.get(), kMiB, 2 * kMiB, ZeroMode::kHole));
  EXPECT_LE(allocated_bytes(fd.get()), 2 * kMiB + 65'536);
}

TEST_P(ZeroTest, HoleUpToAnUnevenEndTakesTheLastBlock) {
  const auto fd = dir_->file("data", pattern(kMiB + 100, 3));
  ASSERT_EQ(::fsync(fd.get()), 0);
  ASSERT_TRUE(zero_range(fd.get(), 0, kMiB + 100, ZeroMode::kHole));
  EXPECT_EQ(allocated_bytes(fd.get()), 0U);
  EXPECT_EQ(data_size(fd.get()), kMiB + 100);
}

TEST_P(ZeroTest, AllocatedZerosFillAHole) {
  const auto fd = dir_->sparse("data", 4 * kMiB);
  ASSERT_TRUE(zero_range(fd.get(), kMiB, kMiB, ZeroMode::kAllocated));
  EXPECT_GE(allocated_bytes(fd.get()), kMiB);
  EXPECT_EQ(content_of(fd.get()), std::vector<std::uint8_t>(4 * kMiB));
}

TEST_P(ZeroTest, NeverGrowsAFile) {
  constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  for (const auto mode : {ZeroMode::kHole, ZeroMode::kAllocated}) {
    const auto fd = dir_->file("data", pattern(10'000, 4));
    ASSERT_TRUE(zero_range(fd.get(), 9'000, kMiB, mode));
    ASSERT_TRUE(zero_range(fd.get(), 10'000, kMiB, mode));
    ASSERT_TRUE(zero_range(fd.get(), kMiB, kMiB, mode));
    ASSERT_TRUE(zero_range(fd.get(), 9'999, kAll, mode));
    ASSERT_TRUE(zero_range(fd.get(), 5, 0, mode));
    EXPECT_EQ(content_of(fd.get()), zeroed(pattern(10'000, 4), {9'000, 1'000}));
  }
}

INSTANTIATE_TEST_SUITE_P(FileSystems, ZeroTest, test::all_file_systems(), test::file_system_name);

// Uneven ranges through a direct descriptor too.
class ZeroDevice : public testing::TestWithParam<std::tuple<ZeroMode, int>> {};

TEST_P(ZeroDevice, ZeroesExactlyTheRange) {
  std::string why;
  const auto device = test::LoopDevice::make(2 * kMiB, why);
  if (device == nullptr) GTEST_SKIP() << why;
  const auto [mode, flags] = GetParam();
  const auto plain = device->open(O_RDWR);
  const auto fd = device->open(O_RDWR | flags);
  for (const Range range : kRanges) {
    const auto content = pattern(2 * kMiB, 5);
    ASSERT_TRUE(write_full(plain.get(), content.data(), content.size(), 0));
    ASSERT_EQ(::fdatasync(plain.get()), 0);
    const auto status = zero_range(fd.get(), range.offset, range.length, mode);
    ASSERT_TRUE(status) << status.error().message();
    ASSERT_EQ(content_of(plain.get()), zeroed(content, range))
        << range.offset << "+" << range.length;
    EXPECT_EQ(::fcntl(fd.get(), F_GETFL) & O_DIRECT, flags);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ZeroDevice,
                         testing::Combine(testing::Values(ZeroMode::kHole, ZeroMode::kAllocated),
                                          testing::Values(0, O_DIRECT)));

TEST(Zero, ReadOnlyDescriptorIsAnError) {
  const test::ScratchDir dir;
  dir.file("data", pattern(8192, 6));
  const base::UniqueFd fd(::open((dir.path() + "/data").c_str(), O_RDONLY | O_CLOEXEC));
  const auto status = zero_range(fd.get(), 0, 4096, ZeroMode::kHole);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().os_errno, EBADF);
}

}  // namespace
}  // namespace volferry::io
