// SPDX-License-Identifier: Apache-2.0
#include "engine/session/allocation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/session/support.h"

#include "engine/io/file.h"

namespace volferry::session {
namespace {

using testing::noise;
using testing::TempDir;

constexpr std::uint64_t kBlock = 64 << 10;  // a multiple of any file system's own

class AllocationTest : public ::testing::Test {
 protected:
  // A file of `pattern.size()` blocks: data, or where there is a '.', a hole.
  base::UniqueFd file(const std::string& name, const std::string& pattern, std::uint64_t more = 0) {
    base::UniqueFd fd(::open(dir_.at(name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(pattern.size() * kBlock + more)), 0);
    const std::string zeros(kBlock, 0);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == '.') continue;
      EXPECT_EQ(::pwrite(fd.get(), zeros.data(), kBlock, static_cast<off_t>(i * kBlock)),
                static_cast<ssize_t>(kBlock));
    }
    if (!io::tells_allocation(fd.get())) unknown_ = true;
    return fd;
  }
  // The pattern of what takes space now.
  static std::string pattern_of(int fd) {
    const std::uint64_t size = io::data_size(fd).value_or(0);
    std::string pattern;
    for (std::uint64_t at = 0; at < size; at += kBlock) {
      const auto extent = io::next_allocated(fd, at, std::min(at + kBlock, size));
      pattern += extent && *extent ? 'x' : '.';
    }
    return pattern;
  }
  bool same(const std::string& source, const std::string& destination) {
    const auto a = file("a", source);
    const auto b = file("b", destination);
    const auto result = same_allocation(a.get(), b.get());
    EXPECT_TRUE(result);
    return result.value_or(false);
  }

  TempDir dir_;
  bool unknown_ = false;
};

TEST_F(AllocationTest, ComparesMaps) {
  const bool equal = same("x..xx.", "x..xx.");
  if (unknown_) GTEST_SKIP() << "this file system does not tell where files take space";
  EXPECT_TRUE(equal);
  EXPECT_TRUE(same("", ""));
  EXPECT_TRUE(same("....", "...."));
  EXPECT_FALSE(same("....", "..x."));
  EXPECT_FALSE(same("xxxx", "xx.x"));
  EXPECT_FALSE(same("x..x", "x.xx"));
  EXPECT_FALSE(same("...x", "...."));
}

TEST_F(AllocationTest, HolesSmallerThanABlockAskForNothing) {
  const auto fd = file("f", "xx");
  if (unknown_) GTEST_SKIP() << "this file system does not tell where files take space";
  AllocationMap map = *AllocationMap::load(fd.get(), 0, 2 * kBlock);
  map.block = kBlock;
  EXPECT_TRUE(map.as_source(512, kBlock - 512, true));
  EXPECT_TRUE(map.as_source(512, kBlock + 512, true));
  EXPECT_FALSE(map.as_source(512, 2 * kBlock, true));
  // The last block ends with the file.
  const auto odd = file("odd", "x", 100);
  EXPECT_EQ(::pwrite(odd.get(), "x", 1, kBlock + 50), 1);
  const AllocationMap odd_map = *AllocationMap::load(odd.get(), 0, kBlock + 100);
  EXPECT_FALSE(odd_map.as_source(kBlock, kBlock + 100, true));
  EXPECT_TRUE(odd_map.as_source(kBlock, kBlock + 100, false));
}

TEST_F(AllocationTest, MakesAndFillsHoles) {
  const auto fd = file("f", "xx..xx..");
  if (unknown_) GTEST_SKIP() << "this file system does not tell where files take space";
  ASSERT_TRUE(make_hole(fd.get(), kBlock, 5 * kBlock));
  EXPECT_EQ(pattern_of(fd.get()), "x....x..");
  ASSERT_TRUE(fill_holes(fd.get(), 0, 7 * kBlock));
  EXPECT_EQ(pattern_of(fd.get()), "xxxxxxx.");
  ASSERT_TRUE(make_hole(fd.get(), 7 * kBlock, 8 * kBlock));
  EXPECT_EQ(pattern_of(fd.get()), "xxxxxxx.");
}

TEST_F(AllocationTest, AHoleZeroesWhatSharesABlock) {
  const auto fd = file("f", "xx");
  if (unknown_) GTEST_SKIP() << "this file system does not tell where files take space";
  const std::string bytes = noise(2 * kBlock, 1);
  ASSERT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(make_hole(fd.get(), 100, kBlock + 100));
  std::string now(2 * kBlock, 'x');
  ASSERT_EQ(::pread(fd.get(), now.data(), now.size(), 0), static_cast<ssize_t>(now.size()));
  EXPECT_EQ(now, bytes.substr(0, 100) + std::string(kBlock, 0) + bytes.substr(kBlock + 100));
}

}  // namespace
}  // namespace volferry::session
