// SPDX-License-Identifier: Apache-2.0
#include "engine/io/metadata.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/unit/io/scratch.h"

namespace volferry::io {
namespace {

class MetadataTest : public ::testing::Test {
 protected:
  MetadataTest() : fd_(::open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    file_ = scratch_.file("f", {1, 2, 3});
  }
  struct stat raw(const std::string& name) const {
    struct stat st{};
    EXPECT_EQ(::lstat((scratch_.path() + "/" + name).c_str(), &st), 0);
    return st;
  }
  test::ScratchDir scratch_;
  base::UniqueFd fd_;
  base::UniqueFd file_;
};

TEST_F(MetadataTest, TellsTypes) {
  std::filesystem::create_symlink("f", scratch_.path() + "/l");
  std::filesystem::create_directory(scratch_.path() + "/d");
  ASSERT_EQ(::mkfifoat(fd_.get(), "p", 0600), 0);
  ASSERT_EQ(::mknodat(fd_.get(), "s", S_IFSOCK | 0600, 0), 0);
  const std::pair<const char*, FileType> types[] = {{"f", FileType::kFile},
                                                    {"l", FileType::kSymlink},
                                                    {"d", FileType::kDirectory},
                                                    {"p", FileType::kFifo},
                                                    {"s", FileType::kSocket}};
  for (const auto& [name, type] : types) EXPECT_EQ(stat_at(fd_.get(), name)->type, type) << name;
  EXPECT_EQ(stat_at(fd_.get(), "")->type, FileType::kDirectory);
  EXPECT_EQ(stat_at(fd_.get(), "none").error().os_errno, ENOENT);
  const base::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(stat_fd(null.get())->type, FileType::kCharDevice);
  EXPECT_EQ(stat_fd(null.get())->rdev, makedev(1, 3));
}

TEST_F(MetadataTest, TellsSizesLinksAndInodes) {
  ASSERT_EQ(::linkat(fd_.get(), "f", fd_.get(), "g", 0), 0);
  const auto f = stat_at(fd_.get(), "f");
  const auto g = stat_fd(file_.get());
  ASSERT_TRUE(f && g);
  EXPECT_EQ(f->size, 3u);
  EXPECT_EQ(f->nlink, 2u);
  EXPECT_EQ(f->ino, g->ino);
  EXPECT_EQ(f->dev, g->dev);
}

TEST_F(MetadataTest, TimesToTheNanosecondBefore1970AndAfter2038) {
  const Timestamp times[] = {{0, 1},
                             {1, 999'999'999},
                             {-1, 999'999'999},
                             {-1'000'000'000, 123'456'789},
                             {(1ll << 31) + 5, 5},
                             {10'000'000'000, 987'654'321}};
  for (const Timestamp& time : times) {
    ASSERT_TRUE(set_mtime_at(fd_.get(), "f", time)) << time.seconds;
    EXPECT_EQ(stat_at(fd_.get(), "f")->mtime, time) << time.seconds;
    ASSERT_TRUE(set_mtime_at(file_.get(), "", {7, 7}));
    EXPECT_EQ(stat_fd(file_.get())->mtime, (Timestamp{7, 7}));
  }
}

TEST_F(MetadataTest, TheAccessTimeIsLeftAlone) {
  const struct timespec times[2] = {{1234, 5}, {1, 0}};
  ASSERT_EQ(::futimens(file_.get(), times), 0);
  ASSERT_TRUE(set_mtime_at(fd_.get(), "f", {99, 1}));
  EXPECT_EQ(raw("f").st_atim.tv_sec, 1234);
  EXPECT_EQ(raw("f").st_atim.tv_nsec, 5);
}

TEST_F(MetadataTest, NothingFollowsALink) {
  std::filesystem::create_symlink("f", scratch_.path() + "/l");
  ASSERT_TRUE(set_mtime_at(fd_.get(), "f", {50, 0}));
  const struct stat before = raw("f");
  ASSERT_TRUE(set_mtime_at(fd_.get(), "l", {77, 7}));
  EXPECT_EQ(stat_at(fd_.get(), "l")->mtime, (Timestamp{77, 7}));
  const Status mode = set_mode_at(fd_.get(), "l", 0777);
  ASSERT_FALSE(mode);
  EXPECT_EQ(mode.error().os_errno, ELOOP);
  if (::geteuid() == 0) {
    ASSERT_TRUE(set_owner_at(fd_.get(), "l", 12, 34));
    EXPECT_EQ(stat_at(fd_.get(), "l")->uid, 12u);
  }
  const struct stat after = raw("f");
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_mtim.tv_sec, 50);
}

TEST_F(MetadataTest, ModesWithAllTwelveBits) {
  for (const std::uint16_t mode : {07777, 00000, 04755, 02711, 01777, 00644}) {
    ASSERT_TRUE(set_mode_at(fd_.get(), "f", mode));
    EXPECT_EQ(stat_at(fd_.get(), "f")->mode, mode);
    ASSERT_TRUE(set_mode_at(file_.get(), "", 0600));
    EXPECT_EQ(stat_fd(file_.get())->mode, 0600);
  }
  EXPECT_EQ(set_mode_at(fd_.get(), "none", 0600).error().os_errno, ENOENT);
}

// Opening a fifo waits for its other end, and a device may do worse: they are pinned, not opened.
TEST_F(MetadataTest, ModeOfAFifo) {
  ASSERT_EQ(::mkfifoat(fd_.get(), "p", 0600), 0);
  ASSERT_TRUE(set_mode_at(fd_.get(), "p", 0640));
  EXPECT_EQ(stat_at(fd_.get(), "p")->mode, 0640);
}

TEST_F(MetadataTest, Owners) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  ASSERT_TRUE(set_owner_at(fd_.get(), "f", 1234, 4'000'000'000U));
  EXPECT_EQ(stat_at(fd_.get(), "f")->uid, 1234u);
  EXPECT_EQ(stat_at(fd_.get(), "f")->gid, 4'000'000'000U);
  ASSERT_TRUE(set_owner_at(file_.get(), "", static_cast<std::uint32_t>(-1), 5));
  EXPECT_EQ(stat_fd(file_.get())->uid, 1234u);
  EXPECT_EQ(stat_fd(file_.get())->gid, 5u);
}

TEST_F(MetadataTest, LinkTargets) {
  const std::string longest(4095, 't');
  ASSERT_EQ(::symlinkat(longest.c_str(), fd_.get(), "long"), 0);
  ASSERT_EQ(::symlinkat("\xff/..", fd_.get(), "odd"), 0);
  EXPECT_EQ(*read_link_at(fd_.get(), "long"), longest);
  EXPECT_EQ(*read_link_at(fd_.get(), "odd"), "\xff/..");
  EXPECT_EQ(read_link_at(fd_.get(), "f").error().os_errno, EINVAL);
}

TEST_F(MetadataTest, UnchangedLooksAtSizeAndBothTimes) {
  const Metadata before = *stat_fd(file_.get());
  EXPECT_TRUE(unchanged(before, *stat_fd(file_.get())));
  Metadata other = before;
  other.size += 1;
  EXPECT_FALSE(unchanged(before, other));
  other = before;
  other.mtime.nanoseconds ^= 1;
  EXPECT_FALSE(unchanged(before, other));
  other = before;
  other.ctime.seconds += 1;
  EXPECT_FALSE(unchanged(before, other));
  other = before;
  other.nlink += 1;  // a link elsewhere changes no content
  EXPECT_TRUE(unchanged(before, other));
}

}  // namespace
}  // namespace volferry::io
