// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "tests/unit/io/file_systems.h"

#include "engine/base/buffer.h"
#include "engine/io/file.h"

namespace volferry::io {
namespace {

using test::pattern;

class DirectTest : public test::FileSystemTest {};

TEST_P(DirectTest, AlignmentIsEnough) {
  const auto fd = dir_->file("data", pattern(65'536, 1));
  ASSERT_EQ(::fsync(fd.get()), 0);
  const int flags = ::fcntl(fd.get(), F_GETFL);
  const auto alignment = direct_alignment(fd.get());
  EXPECT_EQ(::fcntl(fd.get(), F_GETFL), flags);
  if (!alignment) {
    EXPECT_FALSE(set_direct(fd.get(), true));
    GTEST_SKIP() << "no direct I/O on " << GetParam();
  }
  ASSERT_TRUE(set_direct(fd.get(), true));
  const auto pool = base::BufferPool::create(1, 65'536);
  auto buffer = (*pool)->try_acquire();
  EXPECT_EQ(*alignment & (*alignment - 1), 0U);
  EXPECT_LE(*alignment, 65'536U);
  const auto count = read_full(fd.get(), buffer.data() + *alignment, *alignment, *alignment);
  ASSERT_TRUE(count) << count.error().message();
  EXPECT_EQ(*count, *alignment);
}

TEST_P(DirectTest, SwitchesOnAndOff) {
  const auto fd = dir_->file("data", {});
  if (!set_direct(fd.get(), true)) GTEST_SKIP() << "no direct I/O on " << GetParam();
  EXPECT_NE(::fcntl(fd.get(), F_GETFL) & O_DIRECT, 0);
  EXPECT_TRUE(set_direct(fd.get(), true));
  EXPECT_TRUE(set_direct(fd.get(), false));
  EXPECT_EQ(::fcntl(fd.get(), F_GETFL) & O_DIRECT, 0);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, DirectTest, test::all_file_systems(), test::file_system_name);

TEST(Direct, DeviceAlignmentIsItsLogicalBlock) {
  std::string why;
  const auto device = test::LoopDevice::make(1 << 20, why);
  if (device == nullptr) GTEST_SKIP() << why;
  const auto fd = device->open(O_RDONLY);
  EXPECT_EQ(direct_alignment(fd.get()), 512U);
}

TEST(Direct, PipesAreNotDirect) {
  EXPECT_FALSE(set_direct(-1, true));
  EXPECT_EQ(direct_alignment(-1), std::nullopt);
}

TEST(Direct, CachedOrNot) {
  const test::ScratchDir dir;
  const auto fd = dir.file("data", pattern(8 << 20, 2));
  EXPECT_TRUE(mostly_cached(fd.get(), 8 << 20));
  ASSERT_EQ(::fsync(fd.get()), 0);
  ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_FALSE(mostly_cached(fd.get(), 8 << 20));
  // Looking has not read it in.
  EXPECT_FALSE(mostly_cached(fd.get(), 8 << 20));
  EXPECT_FALSE(mostly_cached(fd.get(), 0));
  EXPECT_FALSE(mostly_cached(-1, 4096));
}

TEST(Direct, SmallFileCached) {
  const test::ScratchDir dir;
  const auto fd = dir.file("data", pattern(5000, 3));
  EXPECT_TRUE(mostly_cached(fd.get(), 5000));
}

}  // namespace
}  // namespace volferry::io
