// SPDX-License-Identifier: Apache-2.0
#include "engine/io/dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/unit/io/scratch.h"

namespace volferry::io {
namespace {

base::UniqueFd open_path(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(fd) << path << ": " << std::strerror(errno);
  return fd;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.path().empty() ? 0 : 1;
  }
  return count;
}

class DirTest : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return scratch_.path() + "/" + name; }
  void make(const std::string& name) { std::filesystem::create_directories(at(name)); }

  test::ScratchDir scratch_;
  base::UniqueFd fd_ = open_path(scratch_.path());
};

// ---- open_at

TEST_F(DirTest, OpensFilesAndDirectories) {
  (void)scratch_.file("f", {1, 2, 3});
  make("d");
  EXPECT_TRUE(open_at(fd_.get(), "f", O_RDONLY));
  EXPECT_TRUE(open_at(fd_.get(), "d", O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(open_at(fd_.get(), "none", O_RDONLY).error().os_errno, ENOENT);
  const auto made = open_at(fd_.get(), "new", O_RDWR | O_CREAT | O_EXCL, 0640);
  ASSERT_TRUE(made);
  EXPECT_NE(::fcntl(made->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(open_at(fd_.get(), "new", O_RDWR | O_CREAT | O_EXCL, 0640).error().os_errno, EEXIST);
}

TEST_F(DirTest, FollowsNoLink) {
  make("d");
  (void)scratch_.file("f", {1});
  std::filesystem::create_symlink("f", at("to-file"));
  std::filesystem::create_directory_symlink("d", at("to-dir"));
  std::filesystem::create_symlink("nowhere", at("dangling"));
  EXPECT_EQ(open_at(fd_.get(), "to-file", O_RDONLY).error().os_errno, ELOOP);
  const auto directory = open_at(fd_.get(), "to-dir", O_RDONLY | O_DIRECTORY);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().os_errno, ::testing::AnyOf(ELOOP, ENOTDIR));
  // Creation does not lead through a link either.
  EXPECT_FALSE(open_at(fd_.get(), "dangling", O_RDWR | O_CREAT, 0600));
  EXPECT_FALSE(std::filesystem::exists(at("nowhere")));
}

TEST_F(DirTest, LeavesNeitherUpwardsNorByAbsolutePath) {
  make("d");
  const base::UniqueFd below = open_path(at("d"));
  (void)scratch_.file("f", {1});
  EXPECT_FALSE(open_at(below.get(), "..", O_RDONLY | O_DIRECTORY));
  EXPECT_FALSE(open_at(below.get(), "../f", O_RDONLY));
  EXPECT_FALSE(open_at(below.get(), "/etc/passwd", O_RDONLY));
}

TEST_F(DirTest, FollowsNoMagicLink) {
  const base::UniqueFd proc(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(proc);
  EXPECT_FALSE(open_at(proc.get(), std::to_string(fd_.get()), O_RDONLY));
}

// ---- read_names

TEST_F(DirTest, NamesComeInByteOrder) {
  for (const char* name : {"b", "a", "B", "\xff", "aa", ".hidden"}) (void)scratch_.file(name, {});
  make("dir");
  const auto names = read_names(fd_.get());
  ASSERT_TRUE(names);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < names->size(); ++i) found.emplace_back(names->name(i));
  EXPECT_THAT(found, ::testing::ElementsAre(".hidden", "B", "a", "aa", "b", "dir", "\xff"));
  EXPECT_EQ(names->find("aa"), 3u);
  EXPECT_EQ(names->find("ab"), names->size());
  EXPECT_EQ(names->find(""), names->size());
  EXPECT_EQ(names->find("\xff\xff"), names->size());
  EXPECT_THAT(names->type(5), ::testing::AnyOf(DT_DIR, DT_UNKNOWN));
}

TEST_F(DirTest, NamesAreReadAnewEachTime) {
  EXPECT_EQ(read_names(fd_.get())->size(), 0u);
  (void)scratch_.file("a", {});
  EXPECT_EQ(read_names(fd_.get())->size(), 1u);
  EXPECT_EQ(read_names(fd_.get())->size(), 1u);
}

TEST_F(DirTest, MoreNamesThanOneReadGives) {
  for (int i = 0; i < 2000; ++i) {
    const std::string name = std::string("a-name-of-some-length-").append(std::to_string(i));
    ASSERT_EQ(::mknodat(fd_.get(), name.c_str(), S_IFREG | 0600, 0), 0);
  }
  const auto names = read_names(fd_.get());
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), 2000u);
  for (std::size_t i = 1; i < names->size(); ++i) EXPECT_LT(names->name(i - 1), names->name(i));
}

// ---- DirTree

TEST_F(DirTest, PathsAndDescriptors) {
  make("a/b");
  DirTree tree(open_path(scratch_.path()), 8);
  EXPECT_EQ(tree.root()->path(), "");
  EXPECT_EQ(tree.root()->path_of("x"), "x");
  const DirPtr a = tree.child(tree.root(), "a");
  const DirPtr b = tree.child(a, "b");
  EXPECT_EQ(b->path(), "a/b");
  EXPECT_EQ(b->path_of("x"), "a/b/x");
  const auto fd = tree.open(b);
  ASSERT_TRUE(fd);
  struct stat have{};
  struct stat want{};
  ASSERT_EQ(::fstat((*fd)->get(), &have), 0);
  ASSERT_EQ(::stat(at("a/b").c_str(), &want), 0);
  EXPECT_EQ(have.st_ino, want.st_ino);
  EXPECT_EQ(tree.open(b)->get(), fd->get());  // kept
  EXPECT_EQ(tree.open(tree.child(a, "none")).error().os_errno, ENOENT);
}

TEST_F(DirTest, DeeperThanPathMax) {
  constexpr int kDepth = 300;
  const std::string name(200, 'n');
  DirTree tree(open_path(scratch_.path()), 4);
  DirPtr node = tree.root();
  for (int i = 0; i < kDepth; ++i) {
    {
      const auto fd = tree.open(node);
      ASSERT_TRUE(fd) << i;
      ASSERT_EQ(::mkdirat((*fd)->get(), name.c_str(), 0700), 0);
    }
    node = tree.child(node, name);
  }
  EXPECT_EQ(node->path().size(), std::size_t{kDepth} * (name.size() + 1) - 1);
  EXPECT_TRUE(tree.open(node));
  // Removed from the inside out; removing by path could not reach it.
  for (int i = 0; i < kDepth; ++i) {
    node = node->parent();
    const auto fd = tree.open(node);
    ASSERT_TRUE(fd);
    ASSERT_EQ(::unlinkat((*fd)->get(), name.c_str(), AT_REMOVEDIR), 0);
  }
}

TEST_F(DirTest, LongChainsEndWithoutRecursion) {
  DirTree tree(open_path(scratch_.path()), 4);
  DirPtr node = tree.root();
  for (int i = 0; i < 500'000; ++i) node = tree.child(node, "x");
  node.reset();  // would overflow the stack
}

TEST_F(DirTest, OnlySoManyStayOpen) {
  DirTree tree(open_path(scratch_.path()), 5);
  std::vector<DirPtr> nodes;
  for (int i = 0; i < 50; ++i) {
    const std::string name = std::string("d").append(std::to_string(i));
    make(name);
    nodes.push_back(tree.child(tree.root(), name));
  }
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 2; ++round) {
    for (const DirPtr& node : nodes) ASSERT_TRUE(tree.open(node));
  }
  EXPECT_EQ(open_descriptors(), before + 5);
  // One in use stays valid although it has left the cache.
  const DirFd held = *tree.open(nodes[0]);
  for (const DirPtr& node : nodes) ASSERT_TRUE(tree.open(node));
  EXPECT_TRUE(read_names(held->get()));
  nodes.clear();
  EXPECT_EQ(open_descriptors(), before + 1);
}

TEST_F(DirTest, AnotherDirectoryUnderTheNameIsStale) {
  make("d");
  make("e");
  DirTree tree(open_path(scratch_.path()), 1);
  const DirPtr d = tree.child(tree.root(), "d");
  const DirPtr e = tree.child(tree.root(), "e");
  ASSERT_TRUE(tree.open(d));
  ASSERT_TRUE(tree.open(e));  // d is closed now
  std::filesystem::rename(at("d"), at("moved"));
  make("d");
  EXPECT_EQ(tree.open(d).error().os_errno, ESTALE);
  std::filesystem::remove(at("d"));
  std::filesystem::create_directory_symlink("moved", at("d"));
  EXPECT_FALSE(tree.open(d));
  std::filesystem::remove(at("d"));
  std::filesystem::rename(at("moved"), at("d"));
  EXPECT_TRUE(tree.open(d));
}

TEST_F(DirTest, AnAncestorThatWasSwappedIsStale) {
  make("a/b/c");
  make("other");
  DirTree tree(open_path(scratch_.path()), 1);
  const DirPtr a = tree.child(tree.root(), "a");
  const DirPtr c = tree.child(tree.child(a, "b"), "c");
  ASSERT_TRUE(tree.open(c));
  ASSERT_TRUE(tree.open(tree.child(tree.root(), "other")));
  std::filesystem::rename(at("a"), at("moved"));
  make("a/b/c");
  EXPECT_EQ(tree.open(c).error().os_errno, ESTALE);
}

TEST_F(DirTest, ManyThreadsShareATree) {
  DirTree tree(open_path(scratch_.path()), 3);
  for (int i = 0; i < 8; ++i) make(std::string("d").append(std::to_string(i)) + "/sub");
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&tree, &failed, t] {
      for (int i = 0; i < 300; ++i) {
        const DirPtr node =
            tree.child(tree.root(), std::string("d").append(std::to_string((i + t) % 8)));
        const auto fd = tree.open(tree.child(node, "sub"));
        struct stat st{};
        if (!fd || ::fstat((*fd)->get(), &st) != 0) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
}

}  // namespace
}  // namespace volferry::io
