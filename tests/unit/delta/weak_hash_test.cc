// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/weak_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/delta/content.h"

namespace volferry::delta::internal {
namespace {

using testing::Content;
using testing::make_hash;
using testing::random_content;

TEST(WeakHash, RollingEqualsHashingAfresh) {
  for (const std::uint32_t block : {1U, 5U, 512U, 700U, 1023U, 4096U}) {
    const WeakHash weak(make_hash(), block);
    const Content content = random_content(block + 3000, block);
    WeakHash::State state = weak.state({content.data(), block});
    for (std::size_t at = 0; at + block < content.size(); ++at) {
      state = weak.roll(state, content[at], content[at + block]);
      ASSERT_EQ(state, weak.state({content.data() + at + 1, block})) << block << " " << at;
    }
  }
}

TEST(WeakHash, OfZerosIsTheEmptyState) {
  const WeakHash weak(make_hash(), 512);
  EXPECT_EQ(weak.state(Content(512)), WeakHash::State{});
}

TEST(WeakHash, DependsOnTheSecret) {
  const Content content = random_content(1024, 1);
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    seen.insert(WeakHash(make_hash(HashKind::kXxh3, seed), 1024).state(content).weak);
  }
  EXPECT_EQ(seen.size(), 50U);
}

TEST(WeakHash, SpreadsBlocksThatDifferInOneByte) {
  const WeakHash weak(make_hash(), 1024);
  std::set<std::uint32_t> seen;
  Content content(1024, 'A');
  for (std::size_t at = 0; at < content.size(); ++at) {
    for (const std::uint8_t value : {'B', 'C', 'D'}) {
      content[at] = value;
      seen.insert(weak.state(content).weak);
    }
    content[at] = 'A';
  }
  EXPECT_GE(seen.size(), 3 * 1024U - 3);
}

TEST(WeakHash, ReadsNothingPastTheEnd) {
  const testing::GuardedPages pages;
  const WeakHash weak(make_hash(), 512);
  for (std::size_t length = 0; length <= 300; ++length) {
    const Content content = random_content(length, length);
    ASSERT_EQ(weak.state(pages.place(content)), weak.state(content));
  }
}

}  // namespace
}  // namespace volferry::delta::internal
