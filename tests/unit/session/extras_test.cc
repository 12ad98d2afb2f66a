// SPDX-License-Identifier: Apache-2.0
#include "engine/session/extras.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using ::testing::ElementsAre;
using testing::exists;
using testing::TempDir;
using testing::write_file;

class ExtrasTest : public ::testing::Test {
 protected:
  std::uint64_t remove_all(bool read_only = false) {
    Remover remover(options_, tally_, true);
    return extras_.remove_all(tree_, remover, tally_, read_only, true);
  }
  std::vector<std::string> deleted() const {
    std::vector<std::string> paths;
    for (const ItemChangeEvent& event : recorder_.changes()) {
      EXPECT_EQ(event.code, "*deleting");
      paths.push_back(event.path);
    }
    return paths;
  }

  TempDir dir_;
  io::DirTree tree_{testing::open_dir(dir_.path()), 16};
  testing::Recorder recorder_;
  Tally tally_{recorder_};
  VolumeOptions options_;
  Extras extras_;
};

TEST_F(ExtrasTest, TreesGoFromTheBottomAndEachIsReported) {
  dir_.make("d/sub");
  write_file(dir_.at("d/sub/a"), "x");
  write_file(dir_.at("d/b"), "x");
  write_file(dir_.at("stays"), "x");
  testing::set_mtime(dir_.path(), 1000, 7);
  extras_.add(tree_.root(), "", "d");
  EXPECT_EQ(remove_all(), 4u);
  EXPECT_THAT(deleted(), ElementsAre("d/b", "d/sub/a", "d/sub/", "d/"));
  EXPECT_FALSE(exists(dir_.at("d")));
  EXPECT_TRUE(exists(dir_.at("stays")));
  // The directory's own time is the source's and stays.
  struct stat st{};
  ASSERT_EQ(::stat(dir_.path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mtim.tv_sec, 1000);
  EXPECT_EQ(st.st_mtim.tv_nsec, 7);
  EXPECT_TRUE(extras_.empty());
}

TEST_F(ExtrasTest, ADryRunOnlyReports) {
  dir_.make("d");
  write_file(dir_.at("d/a"), "x");
  options_.dry_run = true;
  extras_.add(tree_.root(), "", "d");
  EXPECT_EQ(remove_all(true), 2u);
  EXPECT_THAT(deleted(), ElementsAre("d/a", "d/"));
  EXPECT_TRUE(exists(dir_.at("d/a")));
}

TEST_F(ExtrasTest, LinksAreRemovedNotFollowed) {
  const TempDir other;
  write_file(other.at("precious"), "x");
  dir_.make("d");
  std::filesystem::create_directory_symlink(other.path(), dir_.at("d/link"));
  std::filesystem::create_directory_symlink(other.path(), dir_.at("top"));
  extras_.add(tree_.root(), "", "d");
  extras_.add(tree_.root(), "", "top");
  EXPECT_EQ(remove_all(), 3u);
  EXPECT_TRUE(exists(other.at("precious")));
  EXPECT_FALSE(exists(dir_.at("top")));
}

TEST_F(ExtrasTest, LostAndFoundStaysAtTheRootOnly) {
  dir_.make("lost+found");
  dir_.make("d/lost+found");
  extras_.add(tree_.root(), "", "lost+found");
  extras_.add(tree_.root(), "", "d");
  EXPECT_EQ(remove_all(), 2u);
  EXPECT_TRUE(exists(dir_.at("lost+found")));
  EXPECT_FALSE(exists(dir_.at("d")));
}

TEST_F(ExtrasTest, ExcludedItemsAndTheirDirectoriesStay) {
  dir_.make("d/sub");
  write_file(dir_.at("d/sub/keep.me"), "x");
  write_file(dir_.at("d/sub/goes"), "x");
  write_file(dir_.at("d/goes"), "x");
  write_file(dir_.at("top.me"), "x");
  options_.filter = Filter({{false, "*.me"}});
  extras_.add(tree_.root(), "", "d");
  extras_.add(tree_.root(), "", "top.me");
  EXPECT_EQ(remove_all(), 2u);
  EXPECT_TRUE(exists(dir_.at("d/sub/keep.me")));
  EXPECT_FALSE(exists(dir_.at("d/sub/goes")));
  EXPECT_TRUE(exists(dir_.at("top.me")));
  EXPECT_EQ(tally_.errors(), 0u);
}

TEST_F(ExtrasTest, TreesDeeperThanPathMax) {
  const std::string name(200, 'x');
  base::UniqueFd at = testing::open_dir(dir_.make("deep"));
  for (int i = 0; i < 40; ++i) {  // 8,000 bytes of path
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    at = base::UniqueFd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  at.reset();
  extras_.add(tree_.root(), "", "deep");
  EXPECT_EQ(remove_all(), 41u);
  EXPECT_FALSE(exists(dir_.at("deep")));
}

TEST_F(ExtrasTest, WhatIsGoneAlreadyIsNoError) {
  extras_.add(tree_.root(), "", "gone");
  EXPECT_EQ(remove_all(), 0u);
  EXPECT_EQ(tally_.errors(), 0u);
}

TEST_F(ExtrasTest, PastItsBoundItAsksForAnotherPass) {
  // 250-byte names: 64 MiB hold about 230,000.
  const std::string name(250, 'n');
  for (int i = 0; i < 300'000 && !extras_.overflow(); ++i) extras_.add(tree_.root(), "", name);
  EXPECT_TRUE(extras_.overflow());
}

}  // namespace
}  // namespace volferry::session
