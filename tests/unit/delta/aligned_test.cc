// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/aligned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/delta/content.h"

namespace volferry::delta {
namespace {

using testing::Content;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::make_hash;
using testing::random_content;

constexpr auto kLiteral = InstructionKind::kLiteral;
constexpr auto kSame = InstructionKind::kSame;
constexpr auto kZero = InstructionKind::kZero;

std::vector<Instruction> compare(const Content& source, const Content& basis) {
  const StrongHash hash = make_hash();
  return compare_blocks(source, hash.hash_range(source, true).blocks,
                        hash.hash_range(basis, true).blocks, basis.size());
}

void fill(Content& content, std::size_t block, std::uint8_t value) {
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(block * 4096), 4096, value);
}

TEST(CompareBlocks, JoinsEqualBlocks) {
  const Content content = random_content(5 * 4096 + 7, 1);
  EXPECT_THAT(compare(content, content), ElementsAre(Instruction{kSame, 5 * 4096 + 7}));
}

TEST(CompareBlocks, NamesDifferingBlocksOnly) {
  const Content basis = random_content(6 * 4096, 2);
  Content source = basis;
  source[4096] ^= 1;
  source[3 * 4096 - 1] ^= 1;
  source[5 * 4096] ^= 1;
  EXPECT_THAT(compare(source, basis),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kLiteral, 8192},
                          Instruction{kSame, 2 * 4096}, Instruction{kLiteral, 4096}));
}

TEST(CompareBlocks, PrefersSameToZeroAndZeroToLiteral) {
  Content basis = random_content(4 * 4096, 3);
  Content source = basis;
  fill(source, 0, 0);
  fill(basis, 0, 0);
  fill(source, 2, 0);
  EXPECT_THAT(
      compare(source, basis),
      ElementsAre(Instruction{kSame, 8192}, Instruction{kZero, 4096}, Instruction{kSame, 4096}));
}

TEST(CompareBlocks, MatchesAShortLastBlockAtEqualLengthOnly) {
  const Content longer = random_content(4096 + 100, 4);
  const Content shorter(longer.begin(), longer.end() - 1);
  EXPECT_THAT(compare(shorter, longer),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kLiteral, 99}));
  EXPECT_THAT(compare(longer, shorter),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kLiteral, 100}));
  // Even where the hashes agree by chance.
  EXPECT_THAT(compare_blocks({longer.data(), 100}, {5}, {5}, 99),
              ElementsAre(Instruction{kLiteral, 100}));
  EXPECT_THAT(compare_blocks({longer.data(), 100}, {5}, {5}, 100),
              ElementsAre(Instruction{kSame, 100}));
}

TEST(CompareBlocks, TakesAShortTailOfZeros) {
  const Content source(4096 + 5, 0);
  EXPECT_THAT(compare(source, random_content(9000, 5)), ElementsAre(Instruction{kZero, 4101}));
}

TEST(CompareBlocks, AcceptsListsThatDoNotFitTheLengths) {
  const Content source = random_content(3 * 4096, 6);
  EXPECT_THAT(compare_blocks(source, {1, 2, 3}, {1}, 3 * 4096),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kLiteral, 8192}));
  EXPECT_THAT(compare_blocks(source, {1}, {1, 2, 3}, ~std::uint64_t{0}),
              ElementsAre(Instruction{kSame, 4096}, Instruction{kLiteral, 8192}));
  EXPECT_THAT(compare_blocks(source, {1, 2, 3}, {1, 2, 3}, 0),
              ElementsAre(Instruction{kLiteral, 3 * 4096}));
  EXPECT_THAT(compare_blocks({}, {}, {1}, 4096), IsEmpty());
}

TEST(LiteralOrZero, SeesTheLastByteOfABlock) {
  Content source = random_content(4 * 4096 + 10, 7);
  fill(source, 1, 0);
  fill(source, 2, 0);
  source[3 * 4096 - 1] = 1;
  std::fill(source.end() - 10, source.end(), 0);
  EXPECT_THAT(literal_or_zero(source),
              ElementsAre(Instruction{kLiteral, 4096}, Instruction{kZero, 4096},
                          Instruction{kLiteral, 8192}, Instruction{kZero, 10}));
  EXPECT_THAT(literal_or_zero({}), IsEmpty());
}

}  // namespace
}  // namespace volferry::delta
