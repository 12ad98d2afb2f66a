// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/delta/rebuild.h"

#include "engine/delta/rolling.h"

namespace volferry::delta {
namespace {

using testing::Content;
using ::testing::ElementsAre;
using testing::equal;
using ::testing::IsEmpty;
using testing::Job;
using testing::make_hash;
using testing::random_content;
using testing::rebuild;
using testing::Rebuilt;
using testing::sign;

constexpr auto kLiteral = InstructionKind::kLiteral;
constexpr auto kCopy = InstructionKind::kCopy;
constexpr auto kSame = InstructionKind::kSame;
constexpr auto kZero = InstructionKind::kZero;

Content operator+(Content left, const Content& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}
Content part(const Content& content, std::size_t begin, std::size_t length) {
  const auto from = content.begin() + static_cast<std::ptrdiff_t>(begin);
  return {from, from + static_cast<std::ptrdiff_t>(length)};
}

// All ranges in one call.
std::vector<Instruction> match_once(const Content& basis, const Content& source,
                                    bool ordered = false) {
  const StrongHash hash = make_hash();
  const RollingIndex index(hash, sign(hash, basis, 1024));
  return RollingMatcher(hash, index, ordered).match(source, source.size(), 0);
}

TEST(RollingMatcher, CodesAnInsertionAsOneLiteralAndOneCopy) {
  const Content basis = random_content(64 * 1024, 1);
  EXPECT_THAT(match_once(basis, random_content(100, 2) + basis),
              ElementsAre(Instruction{kLiteral, 100}, Instruction{kCopy, 64 * 1024, 0}));
}

TEST(RollingMatcher, CodesEqualContentAsSame) {
  const Content basis = random_content(64 * 1024, 3);
  EXPECT_THAT(match_once(basis, basis), ElementsAre(Instruction{kSame, 64 * 1024}));
}

TEST(RollingMatcher, FindsItsWayBackAfterAChange) {
  const Content basis = random_content(16 * 1024, 4);
  Content source = basis;
  source[5000] ^= 1;
  EXPECT_THAT(match_once(basis, source),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kLiteral, 1024},
                          Instruction{kSame, 11 * 1024}));
}

TEST(RollingMatcher, CodesADeletion) {
  const Content basis = random_content(16 * 1024, 5);
  const Content source = part(basis, 0, 4096) + part(basis, 5 * 1024, 11 * 1024);
  EXPECT_THAT(match_once(basis, source),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kCopy, 11 * 1024, 5 * 1024}));
}

TEST(RollingMatcher, NamesTheLowestOfEqualBlocksUnlessOneStandsInPlace) {
  const Content block = random_content(1024, 6);
  const Content basis = block + block + block;
  EXPECT_THAT(match_once(basis, Content(1, 7) + block),
              ElementsAre(Instruction{kLiteral, 1}, Instruction{kCopy, 1024, 0}));
  EXPECT_THAT(match_once(basis, random_content(2048, 7) + block),
              ElementsAre(Instruction{kLiteral, 2048}, Instruction{kSame, 1024}));
}

TEST(RollingMatcher, CodesZeroRunsOfABlockAndMore) {
  const Content basis = random_content(8192, 8);
  const Content text(3000, 'x');
  EXPECT_THAT(match_once(basis, text + Content(4096, 0) + text),
              ElementsAre(Instruction{kLiteral, 3000}, Instruction{kZero, 4096},
                          Instruction{kLiteral, 3000}));
  EXPECT_THAT(match_once(basis, text + Content(4095, 0) + text),
              ElementsAre(Instruction{kLiteral, 6000 + 4095}));
  EXPECT_THAT(match_once(basis, Content(50000, 0)), ElementsAre(Instruction{kZero, 50000}));
}

TEST(RollingMatcher, FindsTheBlockRightAfterZeros) {
  const Content basis = random_content(8192, 9);
  for (const std::size_t zeros : {4096UL, 4097UL, 5119UL, 5120UL, 20001UL}) {
    EXPECT_THAT(match_once(basis, Content(zeros, 0) + basis),
                ElementsAre(Instruction{kZero, static_cast<std::uint32_t>(zeros)},
                            Instruction{kCopy, 8192, 0}));
  }
}

TEST(RollingMatcher, FindsBlocksThatBeginWithZeros) {
  Content basis = random_content(4096, 10);
  std::fill_n(basis.begin() + 1024, 1000, 0);
  const Content source = Content(10001, 0) + part(basis, 2024, 2072);
  const auto steps = match_once(basis, source);
  EXPECT_THAT(steps, ElementsAre(Instruction{kZero, 9001}, Instruction{kCopy, 3072, 1024}));
}

TEST(RollingMatcher, CutsAMatchAtTheEndOfARangeAndGoesOn) {
  const Content basis = random_content(8192, 11);
  const Content source = Content(10, 1) + basis;
  const StrongHash hash = make_hash();
  const RollingIndex index(hash, sign(hash, basis, 1024));
  RollingMatcher matcher(hash, index, false);
  const base::Bytes all(source);
  EXPECT_THAT(matcher.match(all.first(1500 + 1024), 1500, 0),
              ElementsAre(Instruction{kLiteral, 10}, Instruction{kCopy, 1490, 0}));
  EXPECT_THAT(matcher.match(all.subspan(1500, 100 + 1024), 100, 1500),
              ElementsAre(Instruction{kCopy, 100, 1490}));
  EXPECT_THAT(matcher.match(all.subspan(1600), all.size() - 1600, 1600),
              ElementsAre(Instruction{kCopy, 8192 - 1590, 1590}));
}

TEST(RollingMatcher, ForgetsTheUnfinishedMatchAtAGapOrReset) {
  const Content basis = random_content(8192, 12);
  const Content source = Content(10, 1) + basis;
  const StrongHash hash = make_hash();
  const RollingIndex index(hash, sign(hash, basis, 1024));
  RollingMatcher matcher(hash, index, false);
  const Content other = random_content(300, 13);
  matcher.match({source.data(), 1500 + 1024}, 1500, 0);
  EXPECT_THAT(matcher.match(other, 300, 9000), ElementsAre(Instruction{kLiteral, 300}));
  matcher.reset();
  matcher.match({source.data(), 1500 + 1024}, 1500, 20000);
  matcher.reset();
  EXPECT_THAT(matcher.match(other, 300, 21500), ElementsAre(Instruction{kLiteral, 300}));
}

TEST(RollingMatcher, OrderedCopiesOnlyWhatIsStillThere) {
  const Content basis = random_content(64 * 1024, 14);
  Job job{.ordered = true, .range_bytes = 16 * 1024};
  const Content shifted_up = random_content(100, 15) + basis;
  Rebuilt result = rebuild(basis, shifted_up, job);
  EXPECT_EQ(result.fault, "");
  EXPECT_TRUE(equal(result.content, shifted_up));
  // A hundred bytes at the head of each range were overwritten by the range before.
  EXPECT_EQ(result.literal, 5 * 100U);

  const Content shifted_down = part(basis, 100, basis.size() - 100);
  result = rebuild(basis, shifted_down, job);
  EXPECT_EQ(result.fault, "");
  EXPECT_TRUE(equal(result.content, shifted_down));
  EXPECT_EQ(result.literal, 1024U - 100);
}

TEST(RollingMatcher, UsesAWindowInTheMiddleOfTheBasis) {
  const Content basis = random_content(64 * 1024, 16);
  const StrongHash hash = make_hash();
  RollingSignature signature = sign(hash, part(basis, 10000, 20 * 1024), 1024);
  signature.offset = 10000;
  const RollingIndex index(hash, signature);
  RollingMatcher matcher(hash, index, false);
  const Content source = part(basis, 10000, 2048) + part(basis, 9000, 4096);
  EXPECT_THAT(matcher.match(source, source.size(), 10000),
              ElementsAre(Instruction{kSame, 2048}, Instruction{kLiteral, 1000},
                          Instruction{kCopy, 3072, 10000}, Instruction{kLiteral, 24}));
}

TEST(RollingMatcher, AcceptsEmptyInputAndEmptyIndexes) {
  const StrongHash hash = make_hash();
  const RollingIndex empty(hash, RollingSignature{});
  RollingMatcher matcher(hash, empty, false);
  EXPECT_THAT(matcher.match({}, 0, 0), IsEmpty());
  EXPECT_THAT(matcher.match({}, 100, 0), IsEmpty());
  const Content source = random_content(3000, 17) + Content(5000, 0);
  EXPECT_THAT(matcher.match(source, source.size(), 0),
              ElementsAre(Instruction{kLiteral, 3000}, Instruction{kZero, 5000}));
}

TEST(RollingMatcher, ReadsNothingPastTheEnd) {
  const testing::GuardedPages pages;
  const Content basis = random_content(8192, 18);
  for (std::size_t length = 0; length <= 8192; length += length % 1024 < 3 ? 1 : 101) {
    const Content own = random_content(length, length);
    for (const Content& content : {own, part(basis, 8192 - length, length), Content(length, 0)}) {
      const base::Bytes source = pages.place(content);
      const Rebuilt result = rebuild(basis, source, {.block_bytes = 512, .range_bytes = 2000});
      ASSERT_EQ(result.fault, "");
      ASSERT_TRUE(equal(result.content, source)) << length;
    }
  }
}

TEST(RollingMatcher, WorksWithSha256) {
  const Content basis = random_content(64 * 1024, 19);
  const Content source = random_content(77, 20) + basis;
  const Rebuilt result = rebuild(basis, source, {.kind = HashKind::kSha256});
  EXPECT_TRUE(equal(result.content, source));
  EXPECT_EQ(result.literal, 77U);
}

}  // namespace
}  // namespace volferry::delta
