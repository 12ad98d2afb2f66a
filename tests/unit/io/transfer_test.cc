// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/io/scratch.h"

#include "engine/base/buffer.h"
#include "engine/io/file.h"

namespace volferry::io {
namespace {

using test::pattern;

TEST(Transfer, ReadIsShortOnlyAtTheEnd) {
  const test::ScratchDir dir;
  const auto content = pattern(10'000, 1);
  const auto fd = dir.file("data", content);
  std::vector<std::uint8_t> read(20'000);
  EXPECT_EQ(read_full(fd.get(), read.data(), 10'000, 0), 10'000U);
  EXPECT_EQ(read_full(fd.get(), read.data(), 20'000, 1), 9'999U);
  EXPECT_TRUE(std::equal(content.begin() + 1, content.end(), read.begin()));
  EXPECT_EQ(read_full(fd.get(), read.data(), 1, 10'000), 0U);
}

TEST(Transfer, DirectReadStopsAtAnUnevenEnd) {
  const test::ScratchDir dir;
  const auto content = pattern(5001, 2);
  dir.file("data", content);
  const base::UniqueFd fd(::open((dir.path() + "/data").c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!fd) GTEST_SKIP() << "no direct I/O in the working directory";
  const auto pool = base::BufferPool::create(1, 8192);
  auto buffer = (*pool)->try_acquire();
  EXPECT_EQ(read_full(fd.get(), buffer.data(), 8192, 0), 5001U);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), buffer.data()));
  const auto unaligned = read_full(fd.get(), buffer.data(), 8192, 1);
  ASSERT_FALSE(unaligned);
  EXPECT_EQ(unaligned.error().os_errno, EINVAL);
}

TEST(Transfer, ErrorsNameThePlace) {
  std::uint8_t byte = 0;
  const auto read = read_full(-1, &byte, 1, 7);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().os_errno, EBADF);
  EXPECT_EQ(read.error().context, "pread fd -1 @7+1");
  const auto written = write_full(-1, &byte, 1, 9);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().context, "pwrite fd -1 @9+1");
}

}  // namespace
}  // namespace volferry::io
