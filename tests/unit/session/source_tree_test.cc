// SPDX-License-Identifier: Apache-2.0
#include "engine/session/source_tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "tests/unit/session/support.h"

#include "engine/session/temp_name.h"

namespace volferry::session {
namespace {

using ::testing::ElementsAre;
using testing::TempDir;
using testing::write_file;

class Lists final : public ListSink {
 public:
  Status on_list(wire::DirList list) override {
    lists.push_back(std::move(list));
    if (after) after(lists.back());
    return {};
  }
  std::vector<std::string> names(std::uint32_t dir) const {
    std::vector<std::string> found;
    for (const wire::DirList& list : lists) {
      if (list.dir != dir) continue;
      for (const wire::Entry& entry : list.entries) found.push_back(entry.name);
    }
    return found;
  }
  std::vector<wire::DirList> lists;
  std::function<void(const wire::DirList&)> after;
};

class SourceTreeTest : public ::testing::Test {
 protected:
  SourceTree make() {
    return SourceTree(testing::open_dir(dir_.path()), dir_.path(), options_, tally_);
  }
  TempDir dir_;
  testing::Recorder recorder_;
  Tally tally_{recorder_};
  VolumeOptions options_;
  Lists lists_;
};

TEST_F(SourceTreeTest, DirectoriesComeAfterTheirParentsInByteOrder) {
  dir_.make("b/inner");
  dir_.make("a");
  write_file(dir_.at("B"), "x");
  write_file(dir_.at("\xff"), "x");
  write_file(dir_.at("a/f"), "x");
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  EXPECT_THAT(lists_.names(0), ElementsAre("B", "a", "b", "\xff"));
  ASSERT_EQ(lists_.lists.size(), 4u);
  EXPECT_EQ(lists_.lists[1].name, "a");
  EXPECT_EQ(lists_.lists[2].name, "b");
  EXPECT_EQ(lists_.lists[3].name, "inner");
  EXPECT_EQ(lists_.lists[3].parent, lists_.lists[2].dir);
  EXPECT_EQ(tally_.files_total.load(), 3u);
  EXPECT_EQ(tally_.dirs_total.load(), 4u);
  for (const wire::DirList& list : lists_.lists)
    EXPECT_TRUE(list.first && list.last && list.complete);
}

TEST_F(SourceTreeTest, LargeDirectoriesComeInChunks) {
  for (int i = 0; i < 1300; ++i)
    write_file(dir_.at(std::string("f").append(std::to_string(10000 + i))), "x");
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  ASSERT_GE(lists_.lists.size(), 3u);
  std::uint32_t next = 0;
  for (const wire::DirList& list : lists_.lists) {
    EXPECT_EQ(list.first, next == 0);
    EXPECT_EQ(list.first_index, next);
    EXPECT_EQ(list.last, &list == &lists_.lists.back());
    EXPECT_LE(list.entries.size(), wire::kMaxListEntries);
    next += static_cast<std::uint32_t>(list.entries.size());
  }
  EXPECT_EQ(next, 1300u);
  // The index of a later chunk finds its file.
  const auto opened = tree.open_file(0, 1299);
  ASSERT_TRUE(opened);
  EXPECT_EQ(tree.path_of(0, 1299), "f11299");
}

TEST_F(SourceTreeTest, TemporariesAndLostAndFoundAreNotCarried) {
  write_file(dir_.at(temp_name("f")), "x");
  write_file(dir_.at("f"), "x");
  dir_.make("lost+found");
  dir_.make("d/lost+found");
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  EXPECT_THAT(lists_.names(0), ElementsAre("d", "f"));
  EXPECT_THAT(lists_.names(1), ElementsAre("lost+found"));
  EXPECT_EQ(tree.open_file(0, 1)->meta.size, 1u);
}

TEST_F(SourceTreeTest, ExcludedDirectoriesAreNotEntered) {
  dir_.make("skip/below");
  write_file(dir_.at("a.o"), "x");
  write_file(dir_.at("a.c"), "x");
  options_.filter = Filter({{false, "*.o"}, {false, "/skip/"}});
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  EXPECT_THAT(lists_.names(0), ElementsAre("a.c"));
  EXPECT_EQ(lists_.lists.size(), 1u);
}

TEST_F(SourceTreeTest, NamesOfOneInodeShareAGroup) {
  write_file(dir_.at("a"), "x");
  write_file(dir_.at("z"), "x");
  dir_.make("d");
  ASSERT_EQ(::link(dir_.at("a").c_str(), dir_.at("b").c_str()), 0);
  ASSERT_EQ(::link(dir_.at("a").c_str(), dir_.at("d/c").c_str()), 0);
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  const auto& root = lists_.lists[0].entries;  // a b d z
  EXPECT_NE(root[0].meta.hardlink_group, 0u);
  EXPECT_EQ(root[0].meta.hardlink_group, root[1].meta.hardlink_group);
  EXPECT_EQ(root[0].meta.hardlink_group, lists_.lists[1].entries[0].meta.hardlink_group);
  EXPECT_EQ(root[2].meta.hardlink_group, 0u);
  EXPECT_EQ(root[3].meta.hardlink_group, 0u);
  options_.hardlinks = false;
  Lists again;
  ASSERT_TRUE(tree.walk(again));
  EXPECT_EQ(again.lists[0].entries[0].meta.hardlink_group, 0u);
}

TEST_F(SourceTreeTest, UnknownAndReleasedNumbers) {
  write_file(dir_.at("f"), "hello");
  SourceTree tree = make();
  EXPECT_EQ(tree.open_file(0, 0).error().code, Code::kProtocol);
  ASSERT_TRUE(tree.walk(lists_));
  EXPECT_EQ(tree.open_file(0, 0)->meta.size, 5u);
  EXPECT_EQ(tree.open_file(0, 1).error().code, Code::kProtocol);
  EXPECT_EQ(tree.open_file(9, 0).error().code, Code::kProtocol);
  EXPECT_EQ(tree.path_of(9, 0), "?");
  tree.release(0);
  tree.release(9);
  EXPECT_EQ(tree.open_file(0, 0).error().code, Code::kProtocol);
}

TEST_F(SourceTreeTest, WhatIsNoLongerAFileIsNotRead) {
  for (const char* name : {"fifo", "gone", "link"}) write_file(dir_.at(name), "x");
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  for (const char* name : {"fifo", "gone", "link"}) std::filesystem::remove(dir_.at(name));
  ASSERT_EQ(::mkfifo(dir_.at("fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/etc/passwd", dir_.at("link"));
  EXPECT_EQ(tree.open_file(0, 0).error().os_errno, EINVAL);  // and does not wait for a writer
  EXPECT_EQ(tree.open_file(0, 1).error().os_errno, ENOENT);
  EXPECT_EQ(tree.open_file(0, 2).error().os_errno, ELOOP);
}

TEST_F(SourceTreeTest, ADirectoryThatVanishesIsReportedAndTheWalkGoesOn) {
  dir_.make("a");
  dir_.make("b");
  write_file(dir_.at("b/f"), "x");
  lists_.after = [&](const wire::DirList& list) {
    if (list.dir == 0) std::filesystem::remove(dir_.at("a"));
  };
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  ASSERT_EQ(lists_.lists.size(), 2u);
  EXPECT_EQ(lists_.lists[1].name, "b");
  ASSERT_EQ(recorder_.errors().size(), 1u);
  EXPECT_TRUE(recorder_.errors()[0].changed);
  EXPECT_EQ(recorder_.errors()[0].path, "a");
}

TEST_F(SourceTreeTest, AnUnreadableDirectoryIsASourceError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads every directory";
  dir_.make("d");
  std::filesystem::permissions(dir_.at("d"), std::filesystem::perms::none);
  SourceTree tree = make();
  ASSERT_TRUE(tree.walk(lists_));
  EXPECT_EQ(tally_.source_errors.load(), 1u);
  ASSERT_EQ(lists_.lists.size(), 2u);
  EXPECT_FALSE(lists_.lists[1].complete);
}

TEST_F(SourceTreeTest, MountPointsAreListedButNotEntered) {
  dir_.make("mount");
  if (::mount("tmpfs", dir_.at("mount").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted here: " << std::strerror(errno);
  }
  write_file(dir_.at("mount/inside"), "x");
  options_.one_file_system = true;
  {
    SourceTree tree = make();
    EXPECT_TRUE(tree.walk(lists_));
    options_.one_file_system = false;
    Lists all;
    EXPECT_TRUE(tree.walk(all));
    EXPECT_EQ(all.lists.size(), 2u);
  }
  EXPECT_EQ(::umount(dir_.at("mount").c_str()), 0);
  ASSERT_EQ(lists_.lists.size(), 1u);
  ASSERT_EQ(lists_.lists[0].entries.size(), 1u);
  EXPECT_TRUE(lists_.lists[0].entries[0].no_descend);
}

TEST_F(SourceTreeTest, AFileIsAnImage) {
  write_file(dir_.at("img"), std::string(5000, 'x'));
  SourceTree tree(base::UniqueFd(::open(dir_.at("img").c_str(), O_RDONLY | O_CLOEXEC)), "img",
                  options_, tally_);
  ASSERT_TRUE(tree.walk(lists_));
  ASSERT_EQ(lists_.lists.size(), 1u);
  EXPECT_TRUE(lists_.lists[0].image);
  EXPECT_EQ(lists_.lists[0].entries.at(0).meta.size, 5000u);
  EXPECT_EQ(tree.open_file(0, 0)->meta.size, 5000u);
  EXPECT_EQ(tree.open_file(0, 1).error().code, Code::kProtocol);
}

TEST_F(SourceTreeTest, AStoppedSessionEndsTheWalk) {
  write_file(dir_.at("f"), "x");
  tally_.fail({Code::kInterrupted, 0, "interrupted"});
  SourceTree tree = make();
  const Status walked = tree.walk(lists_);
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace volferry::session
