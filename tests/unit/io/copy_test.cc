// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/unit/io/file_systems.h"

#include "engine/io/file.h"

namespace volferry::io {
namespace {

using test::content_of;
using test::pattern;

class CopyTest : public test::FileSystemTest {};

TEST_P(CopyTest, CloneSharesBlocksOrLeavesBothAlone) {
  const auto content = pattern(3'000'001, 1);
  const auto from = dir_->file("from", content);
  const auto to = dir_->file("to", {});
  const auto cloned = clone_file(from.get(), to.get());
  ASSERT_TRUE(cloned) << cloned.error().message();
  const bool can = GetParam() == "xfs" || GetParam() == "btrfs";
  if (GetParam() != "cwd") {
    EXPECT_EQ(*cloned, can);
  }
  EXPECT_EQ(content_of(from.get()), content);
  EXPECT_EQ(content_of(to.get()), *cloned ? content : std::vector<std::uint8_t>());
}

TEST_P(CopyTest, CopiesARange) {
  const auto content = pattern(5'000'000, 2);
  const auto from = dir_->file("from", content);
  auto expected = pattern(6'000'000, 3);
  const auto to = dir_->file("to", expected);
  const auto status = copy_range(from.get(), 1001, to.get(), 77, 4'900'000);
  ASSERT_TRUE(status) << status.error().message();
  std::copy_n(content.begin() + 1001, 4'900'000, expected.begin() + 77);
  EXPECT_EQ(content_of(to.get()), expected);
}

TEST_P(CopyTest, EarlyEndOfTheSource) {
  const auto from = dir_->file("from", pattern(10'000, 4));
  const auto to = dir_->file("to", {});
  const auto status = copy_range(from.get(), 0, to.get(), 0, 10'001);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kSourceRead);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, CopyTest, test::all_file_systems(), test::file_system_name);

TEST(Copy, AcrossFileSystems) {
  const test::ScratchDir here;
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const test::ScratchDir there("/dev/shm");
  const auto content = pattern(2'500'000, 5);
  const auto from = here.file("from", content);
  const auto to = there.file("to", {});
  ASSERT_TRUE(copy_range(from.get(), 0, to.get(), 0, content.size()));
  EXPECT_EQ(content_of(to.get()), content);
  EXPECT_EQ(clone_file(from.get(), to.get()), false);
}

TEST(Copy, DescriptorsThatRefuseCopyFileRange) {
  const test::ScratchDir dir;
  const auto content = pattern(1'500'000, 6);
  const auto from = dir.file("from", content);
  std::string why;
  const auto device = test::LoopDevice::make(4 << 20, why);
  if (device == nullptr) GTEST_SKIP() << why;
  const auto to = device->open(O_RDWR);
  ASSERT_TRUE(copy_range(from.get(), 0, to.get(), 512, content.size()));
  std::vector<std::uint8_t> read(content.size());
  ASSERT_EQ(read_full(to.get(), read.data(), read.size(), 512), read.size());
  EXPECT_EQ(read, content);
}

TEST(Copy, FilesOfProcHaveContentBeyondTheirSize) {
  const test::ScratchDir dir;
  const base::UniqueFd from(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  const auto to = dir.file("to", {});
  ASSERT_TRUE(from);
  ASSERT_TRUE(copy_range(from.get(), 0, to.get(), 0, 100));
  EXPECT_EQ(content_of(to.get()).size(), 100U);
}

TEST(Copy, FullDestination) {
  std::string why;
  const auto tmpfs = test::TinyTmpfs::make(64 * 1024, why);
  if (tmpfs == nullptr) GTEST_SKIP() << why;
  const test::ScratchDir dir;
  const auto from = dir.file("from", pattern(1 << 20, 7));
  const base::UniqueFd to(
      ::open((tmpfs->path() + "/to").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const auto status = copy_range(from.get(), 0, to.get(), 0, 1 << 20);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDestinationFull);
  EXPECT_EQ(status.error().os_errno, ENOSPC);
}

TEST(Copy, UnwritableDestination) {
  const test::ScratchDir dir;
  const auto from = dir.file("from", pattern(4096, 8));
  dir.file("to", {});
  const base::UniqueFd to(::open((dir.path() + "/to").c_str(), O_RDONLY | O_CLOEXEC));
  const auto status = copy_range(from.get(), 0, to.get(), 0, 4096);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDestinationWrite);
  EXPECT_EQ(status.error().os_errno, EBADF);
}

}  // namespace
}  // namespace volferry::io
