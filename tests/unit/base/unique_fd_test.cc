// SPDX-License-Identifier: Apache-2.0
#include "engine/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace volferry::base {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesAtTheEnd) {
  const int fd = open_null();
  {
    const UniqueFd owner(fd);
    EXPECT_TRUE(owner);
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
}

TEST(UniqueFd, OwnsNothingByDefault) {
  const UniqueFd owner;
  EXPECT_FALSE(owner);
  EXPECT_EQ(owner.get(), -1);
}

TEST(UniqueFd, MovesOwnership) {
  const int fd = open_null();
  const int other = open_null();
  UniqueFd first(fd);
  UniqueFd second(other);
  second = std::move(first);
  EXPECT_FALSE(is_open(other));
  EXPECT_TRUE(is_open(fd));
  EXPECT_EQ(second.get(), fd);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what it leaves is the point
  UniqueFd third(std::move(second));
  EXPECT_EQ(third.get(), fd);
}

TEST(UniqueFd, ReleaseGivesItAway) {
  const int fd = open_null();
  {
    UniqueFd owner(fd);
    EXPECT_EQ(owner.release(), fd);
    EXPECT_FALSE(owner);
  }
  EXPECT_TRUE(is_open(fd));
  ::close(fd);
}

TEST(UniqueFd, ResetClosesTheOldOne) {
  const int fd = open_null();
  UniqueFd owner(fd);
  owner.reset();
  EXPECT_FALSE(is_open(fd));
  const int next = open_null();
  owner.reset(next);
  EXPECT_EQ(owner.get(), next);
}

}  // namespace
}  // namespace volferry::base
