// SPDX-License-Identifier: Apache-2.0
#include "engine/session/links.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::TempDir;
using testing::write_file;

class LinksTest : public ::testing::Test {
 protected:
  LinksTest() { root_ = keeper_.begin(0, nullptr, "", tree_.root()); }
  ino_t inode(const std::string& name) {
    struct stat st{};
    EXPECT_EQ(::lstat(dir_.at(name).c_str(), &st), 0) << name;
    return st.st_ino;
  }
  std::optional<io::Metadata> old(const std::string& name) {
    auto meta = io::stat_at(tree_.root_fd(), name);
    return meta ? std::optional(*meta) : std::nullopt;
  }

  TempDir dir_;
  io::DirTree tree_{testing::open_dir(dir_.path()), 8};
  testing::Recorder recorder_;
  Tally tally_{recorder_};
  VolumeOptions options_;
  Installer installer_{options_, tally_};
  Remover remover_{options_, tally_, true};
  DirKeeper keeper_{tree_, options_, installer_, tally_, [](std::uint32_t) {}};
  Links links_{tree_, options_, keeper_, remover_, tally_};
  DestDirPtr root_;
};

TEST_F(LinksTest, LaterNamesWaitForTheLeader) {
  EXPECT_TRUE(links_.claim_leader(1, root_, "a"));
  EXPECT_FALSE(links_.claim_leader(1, root_, "b"));
  EXPECT_EQ(links_.leader_path(1), "a");
  write_file(dir_.at("c"), "old");
  links_.add(1, root_, "b");
  links_.add(1, root_, "c");
  EXPECT_FALSE(testing::exists(dir_.at("b")));
  EXPECT_EQ(root_->files.load(), 3u);
  write_file(dir_.at("a"), "new");
  links_.leader_ready(1);
  EXPECT_EQ(inode("b"), inode("a"));
  EXPECT_EQ(inode("c"), inode("a"));
  EXPECT_EQ(root_->files.load(), 1u);
  // And one that comes when it stands.
  links_.add(1, root_, "d");
  EXPECT_EQ(inode("d"), inode("a"));
  links_.add(1, root_, "d");
  EXPECT_EQ(inode("d"), inode("a"));
  EXPECT_EQ(tally_.errors(), 0u);
}

TEST_F(LinksTest, WithoutTheLeaderEachNameFails) {
  EXPECT_TRUE(links_.claim_leader(1, root_, "a"));
  links_.add(1, root_, "b");
  links_.leader_failed(1);
  links_.add(1, root_, "c");
  ASSERT_EQ(recorder_.errors().size(), 2u);
  EXPECT_EQ(recorder_.errors()[0].path, "b");
  EXPECT_EQ(recorder_.errors()[1].path, "c");
  EXPECT_EQ(root_->files.load(), 1u);
}

TEST_F(LinksTest, AnInodeServesOneGroup) {
  write_file(dir_.at("a"), "x");
  write_file(dir_.at("b"), "x");
  EXPECT_TRUE(links_.claim_inode(1, *old("a")));
  EXPECT_TRUE(links_.claim_inode(1, *old("a")));
  EXPECT_FALSE(links_.claim_inode(2, *old("a")));
  EXPECT_TRUE(links_.claim_inode(2, *old("b")));
}

TEST_F(LinksTest, SameInodeTellsWhatIsLinkedAlready) {
  write_file(dir_.at("a"), "x");
  write_file(dir_.at("b"), "x");
  ASSERT_EQ(::link(dir_.at("a").c_str(), dir_.at("c").c_str()), 0);
  EXPECT_TRUE(links_.claim_leader(1, root_, "a"));
  links_.set_leader_inode(1, *old("a"));
  EXPECT_TRUE(links_.same_inode(1, *old("c")));
  EXPECT_FALSE(links_.same_inode(1, *old("b")));
}

TEST_F(LinksTest, ADirectoryInTheWayIsReplacedUnlessItHoldsExcludedItems) {
  write_file(dir_.at("a"), "x");
  EXPECT_TRUE(links_.claim_leader(1, root_, "a"));
  links_.leader_ready(1);
  dir_.make("d/sub");
  links_.add(1, root_, "d");
  EXPECT_EQ(inode("d"), inode("a"));
  options_.filter = Filter({{false, "*.keep"}});
  dir_.make("e");
  write_file(dir_.at("e/x.keep"), "x");
  links_.add(1, root_, "e");
  EXPECT_TRUE(testing::exists(dir_.at("e/x.keep")));
  EXPECT_EQ(tally_.errors(), 1u);
}

}  // namespace
}  // namespace volferry::session
