// SPDX-License-Identifier: Apache-2.0
#include "engine/session/dest_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::TempDir;

class DirKeeperTest : public ::testing::Test {
 protected:
  DirKeeperTest() { dir_.make("a/b"); }
  DirKeeper make() {
    return DirKeeper(tree_, options_, installer_, tally_,
                     [this](std::uint32_t n) { released_.push_back(n); });
  }
  void want(const DestDirPtr& dir, std::uint16_t mode, std::int64_t seconds) {
    dir->want.type = wire::EntryType::kDirectory;
    dir->want.mode = mode;
    dir->want.uid = ::geteuid();
    dir->want.gid = ::getegid();
    dir->want.mtime_s = seconds;
  }
  io::Metadata now(const std::string& path) {
    return *io::stat_at(testing::open_dir(dir_.path()).get(), path);
  }

  TempDir dir_;
  io::DirTree tree_{testing::open_dir(dir_.path()), 8};
  Observer observer_;
  Tally tally_{observer_};
  VolumeOptions options_;
  Installer installer_{options_, tally_};
  std::vector<std::uint32_t> released_;
};

TEST_F(DirKeeperTest, ADirectoryGetsItsOwnStateOnceAllBelowIsDone) {
  DirKeeper keeper = make();
  const io::DirPtr a_node = tree_.child(tree_.root(), "a");
  const DestDirPtr a = keeper.begin(1, nullptr, "a", a_node);
  const DestDirPtr b = keeper.begin(2, a, "a/b", tree_.child(a_node, "b"));
  want(a, 0555, 1000);
  want(b, 0500, 2000);
  keeper.add_file(*b);
  keeper.file_done(a);
  keeper.subtree_listed(a);
  EXPECT_THAT(released_, ::testing::ElementsAre(1));
  EXPECT_NE(now("a").mode, 0555);  // b is open
  keeper.file_done(b);             // its merge
  keeper.subtree_listed(b);
  EXPECT_NE(now("a/b").mode, 0500);  // its file is open
  keeper.file_done(b);
  EXPECT_THAT(released_, ::testing::ElementsAre(1, 2));
  EXPECT_EQ(now("a/b").mode, 0500);
  EXPECT_EQ(now("a/b").mtime.seconds, 2000);
  EXPECT_EQ(now("a").mode, 0555);
  EXPECT_EQ(now("a").mtime.seconds, 1000);
}

TEST_F(DirKeeperTest, AReadOnlyPassChangesNothing) {
  DirKeeper keeper = make();
  keeper.set_read_only(true);
  const io::Metadata before = now("a");
  const DestDirPtr a = keeper.begin(1, nullptr, "a", tree_.child(tree_.root(), "a"));
  want(a, 0555, 1000);
  keeper.file_done(a);
  keeper.subtree_listed(a);
  EXPECT_THAT(released_, ::testing::ElementsAre(1));
  EXPECT_EQ(now("a").mode, before.mode);
  EXPECT_EQ(now("a").mtime, before.mtime);
}

TEST_F(DirKeeperTest, AFailedDirectoryIsLeftAsItIs) {
  DirKeeper keeper = make();
  const io::Metadata before = now("a");
  const DestDirPtr a = keeper.begin(1, nullptr, "a", tree_.child(tree_.root(), "a"));
  want(a, 0555, 1000);
  a->failed = true;
  keeper.file_done(a);
  keeper.subtree_listed(a);
  EXPECT_EQ(now("a").mode, before.mode);
  EXPECT_EQ(tally_.errors(), 0u);
}

TEST_F(DirKeeperTest, WidenedModesAreRestoredAfterAnAbort) {
  if (installer_.can_override()) GTEST_SKIP() << "with CAP_DAC_OVERRIDE no mode needs widening";
  DirKeeper keeper = make();
  const DestDirPtr a = keeper.begin(1, nullptr, "a", tree_.child(tree_.root(), "a"));
  want(a, 0100, 1000);
  const base::UniqueFd root = testing::open_dir(dir_.path());
  ASSERT_TRUE(io::set_mode_at(root.get(), "a", 0100));
  keeper.widen(a, root.get(), "a", now("a"));
  EXPECT_EQ(now("a").mode, 0700);
  keeper.restore_all();
  EXPECT_EQ(now("a").mode, 0100);
}

TEST(DestDirPath, BelowTheRootAndBelowOthers) {
  DestDir root;
  EXPECT_EQ(root.path_of("f"), "f");
  DestDir below;
  below.path = "a/b";
  EXPECT_EQ(below.path_of("f"), "a/b/f");
}

}  // namespace
}  // namespace volferry::session
