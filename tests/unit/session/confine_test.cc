// SPDX-License-Identifier: Apache-2.0
#include "engine/session/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::TempDir;
using testing::write_file;

constexpr int kNoLandlock = 77;

// What happens in a confined process: 0, the number of the first expectation that failed, or
// kNoLandlock.
template <typename Body>
int in_confined_child(const std::string& root, bool writable, Body body,
                      const std::vector<std::string>& readable = {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto confined = confine_to(root, writable, readable);
    ::_exit(!confined ? 99 : (*confined ? body() : kNoLandlock));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int open_error(const std::string& path, int flags) {
  const base::UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  return fd ? 0 : errno;
}

class ConfineTest : public ::testing::Test {
 protected:
  ConfineTest() {
    dir_.make("root/sub");
    dir_.make("outside");
    write_file(dir_.at("root/file"), "x");
    write_file(dir_.at("outside/file"), "x");
  }
  TempDir dir_;
};

TEST_F(ConfineTest, OutsideIsForbidden) {
  const int result = in_confined_child(dir_.at("root"), true, [&] {
    if (open_error(dir_.at("outside/file"), O_RDONLY) != EACCES) return 1;
    if (open_error(dir_.at("outside/new"), O_WRONLY | O_CREAT) != EACCES) return 2;
    if (open_error("/etc/passwd", O_RDONLY) != EACCES) return 3;
    if (open_error(dir_.at("root/file"), O_RDWR) != 0) return 4;
    if (open_error(dir_.at("root/new"), O_WRONLY | O_CREAT) != 0) return 5;
    if (::mkdir(dir_.at("root/sub/d").c_str(), 0700) != 0) return 6;
    // Moves and links between directories of the root are what a sync is made of.
    if (::rename(dir_.at("root/new").c_str(), dir_.at("root/sub/moved").c_str()) != 0) return 7;
    if (::link(dir_.at("root/file").c_str(), dir_.at("root/sub/linked").c_str()) != 0) return 8;
    if (::link(dir_.at("root/file").c_str(), dir_.at("outside/linked").c_str()) == 0) return 9;
    if (open_error("/proc/self/status", O_RDONLY) != 0) return 10;
    return 0;
  });
  if (result == kNoLandlock) GTEST_SKIP() << "this kernel has no landlock (ABI 2)";
  EXPECT_EQ(result, 0);
}

TEST_F(ConfineTest, AReadOnlyRootIsNotWritten) {
  const int result = in_confined_child(dir_.at("root"), false, [&] {
    if (open_error(dir_.at("root/file"), O_RDONLY) != 0) return 1;
    if (open_error(dir_.at("root/file"), O_WRONLY) != EACCES) return 2;
    if (open_error(dir_.at("root/new"), O_WRONLY | O_CREAT) != EACCES) return 3;
    if (::unlink(dir_.at("root/file").c_str()) == 0) return 4;
    if (::mkdir(dir_.at("root/d").c_str(), 0700) == 0) return 5;
    return 0;
  });
  if (result == kNoLandlock) GTEST_SKIP() << "this kernel has no landlock (ABI 2)";
  EXPECT_EQ(result, 0);
}

TEST_F(ConfineTest, OtherFoldersMayBeMadeReadable) {
  const std::vector<std::string> readable = {dir_.at("outside"), dir_.at("missing")};
  const int result = in_confined_child(
      dir_.at("root"), true,
      [&] {
        if (open_error(dir_.at("outside/file"), O_RDONLY) != 0) return 1;
        if (open_error(dir_.at("outside/file"), O_WRONLY) != EACCES) return 2;
        if (open_error("/etc/passwd", O_RDONLY) != EACCES) return 3;
        return 0;
      },
      readable);
  if (result == kNoLandlock) GTEST_SKIP() << "this kernel has no landlock (ABI 2)";
  EXPECT_EQ(result, 0);
}

TEST_F(ConfineTest, ALinkLeadsNowhereElse) {
  ASSERT_EQ(::symlink("../outside/file", dir_.at("root/link").c_str()), 0);
  const int result = in_confined_child(dir_.at("root"), true, [&] {
    return open_error(dir_.at("root/link"), O_RDONLY) == EACCES ? 0 : 1;
  });
  if (result == kNoLandlock) GTEST_SKIP() << "this kernel has no landlock (ABI 2)";
  EXPECT_EQ(result, 0);
}

TEST_F(ConfineTest, AFileIsReplacedThroughItsDirectory) {
  const int result = in_confined_child(dir_.at("root/file"), true, [&] {
    if (open_error(dir_.at("root/file"), O_RDWR) != 0) return 1;
    if (open_error(dir_.at("root/temp"), O_WRONLY | O_CREAT) != 0) return 2;
    if (::rename(dir_.at("root/temp").c_str(), dir_.at("root/file").c_str()) != 0) return 3;
    if (open_error(dir_.at("outside/file"), O_RDONLY) != EACCES) return 4;
    return 0;
  });
  if (result == kNoLandlock) GTEST_SKIP() << "this kernel has no landlock (ABI 2)";
  EXPECT_EQ(result, 0);
}

TEST_F(ConfineTest, AMissingRootIsAnError) {
  EXPECT_EQ(in_confined_child(dir_.at("nothing/at/all"), true, [] { return 0; }), 99);
}

}  // namespace
}  // namespace volferry::session
