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

// A window of zeros has the empty state, so rolling from it to the content gives that by
// definition.
TEST(WeakHash, OfAWindowIsWhatRollingToItGives) {
  const testing::GuardedPages pages;
  for (const bool vectors : {true, false}) {
    for (const std::uint32_t block : {1U, 7U, 8U, 9U, 31U, 512U, 1021U, 8192U}) {
      const WeakHash weak(make_hash(), block, vectors);
      const base::Bytes content = pages.place(random_content(block, block));
      WeakHash::State state;
      for (const std::uint8_t byte : content) state = weak.roll(state, 0, byte);
      ASSERT_EQ(state, weak.state(content)) << block << " " << vectors;
    }
  }
}

TEST(WeakHash, RollsToTheStateOfAFreshWindowAndStopsWhereTheFilterSays) {
  const testing::GuardedPages pages;
  std::mt19937_64 random(9);
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t block = 512 + static_cast<std::uint32_t>(random() % 700);
    const WeakHash weak(make_hash(HashKind::kXxh3, random()), block);
    // The window ends where the readable memory does.
    const base::Bytes content = pages.place(random_content(block + random() % 900, random()));
    const std::size_t end = content.size() - block;
    std::vector<std::uint32_t> words(64, 0);
    const WeakFilter filter{words.data(), 63};
    const std::size_t wanted = random() % (end + 1);
    const std::uint32_t hit = weak.state(content.subspan(wanted, block)).weak;
    words[hit & 63] = 1U << WeakFilter::first_bit(hit) | 1U << WeakFilter::second_bit(hit);

    std::size_t expected = 0;
    WeakHash::State state = weak.state(content.first(block));
    while (expected < end && !filter.may_contain(state.weak)) {
      ++expected;
      state = weak.state(content.subspan(expected, block));
    }
    WeakHash::State rolled = weak.state(content.first(block));
    ASSERT_EQ(weak.roll_until(content, 0, end, filter, rolled), expected);
    ASSERT_EQ(rolled, state);
    ASSERT_LE(expected, wanted);

    rolled = weak.state(content.first(block));
    weak.roll_to(content, 0, end, rolled);
    ASSERT_EQ(rolled, weak.state(content.subspan(end, block)));
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
