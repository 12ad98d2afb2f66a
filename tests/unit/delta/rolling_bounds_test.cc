// SPDX-License-Identifier: Apache-2.0
// Content and signatures made to hurt. Work is not timed here (bench/delta_bench.cc does that):
// these check that degenerate content is coded well and that lies of the peer do no harm.
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/delta/rebuild.h"

#include "engine/delta/rolling.h"

namespace volferry::delta {
namespace {

using testing::Content;
using testing::equal;
using testing::Job;
using testing::make_hash;
using testing::random_content;
using testing::rebuild;
using testing::rebuild_with;
using testing::Rebuilt;
using testing::sign;

TEST(RollingBounds, AllEqualBytesBecomeFewInstructions) {
  const Content basis(3 << 20, 'A');
  Content source(basis);
  source.insert(source.begin(), 100, 'B');
  const Rebuilt result = rebuild(basis, source);
  EXPECT_TRUE(equal(result.content, source));
  EXPECT_EQ(result.fault, "");
  EXPECT_LE(result.literal, 100U + 1024);
  EXPECT_LE(result.instructions, 20U);
}

TEST(RollingBounds, PeriodicContentIsFoundAtAnyPhase) {
  Content basis = random_content(700, 1);
  while (basis.size() < 2000000) basis.push_back(basis[basis.size() - 700]);
  const Content source(basis.begin() + 333, basis.end());
  const Rebuilt result = rebuild(basis, source);
  EXPECT_TRUE(equal(result.content, source));
  EXPECT_LE(result.literal, 4096U);
}

TEST(RollingBounds, ContentWithEqualWeakHashesIsRebuilt) {
  std::mt19937_64 random(2);
  const auto draw = [&random] {
    Content content;
    while (content.size() < 600000) {
      for (const char letter : (random() & 1) != 0 ? "abba" : "baab") {
        if (letter != 0) content.push_back(static_cast<std::uint8_t>(letter));
      }
    }
    return content;
  };
  const Content basis = draw();
  Content source = draw();
  source.insert(source.end(), basis.begin(), basis.begin() + 100000);
  for (const bool ordered : {false, true}) {
    const Rebuilt result = rebuild(basis, source, {.ordered = ordered});
    EXPECT_EQ(result.fault, "");
    EXPECT_TRUE(equal(result.content, source));
  }
}

TEST(RollingBounds, FalseWeakMatchesDoNotHideRealOnesForLong) {
  // Every second block of the signature lies about its content.
  const Content basis = random_content(1 << 20, 3);
  RollingSignature signature = sign(make_hash(), basis, 1024);
  for (std::size_t i = 0; i < signature.strong.size(); i += 2) ++signature.strong[i];
  Content source = random_content(10, 4);
  source.insert(source.end(), basis.begin(), basis.end());
  const Rebuilt result = rebuild_with(signature, basis, source, {});
  EXPECT_TRUE(equal(result.content, source));
  EXPECT_EQ(result.copied, std::size_t{1} << 19);
}

TEST(RollingBounds, LyingSignaturesNeverCrash) {
  const Content source = random_content(100000, 5);
  std::mt19937_64 random(6);
  for (int round = 0; round < 300; ++round) {
    RollingSignature signature = sign(make_hash(), source, 1024);
    const std::uint32_t blocks[] = {0, 1, 511, 512, 1000, 1024, 131072, 131073, 0xffffffff};
    signature.block_bytes = blocks[random() % std::size(blocks)];
    signature.weak.resize(random() % 150, static_cast<std::uint32_t>(random() % 2));
    signature.strong.resize(random() % 150, random());
    const std::uint64_t offsets[] = {
        0, 1, 1024, 50000, std::uint64_t{1} << 40, std::numeric_limits<std::uint64_t>::max()};
    signature.offset = offsets[random() % std::size(offsets)];
    const StrongHash hash = make_hash();
    const RollingIndex index(hash, signature);
    RollingMatcher matcher(hash, index, round % 2 == 0);
    std::size_t coded = 0;
    for (const Instruction& step : matcher.match(source, source.size(), 0)) coded += step.length;
    ASSERT_EQ(coded, source.size());
  }
}

TEST(RollingBounds, ABlockThatClaimsTheWeakHashOfZerosIsHarmless) {
  RollingSignature signature;
  signature.block_bytes = 1024;
  signature.weak = {0, 0, 0};
  signature.strong = {1, 2, 3};
  const Content source(200000, 0);
  const Rebuilt result = rebuild_with(signature, Content(3072, 1), source, {});
  EXPECT_TRUE(equal(result.content, source));
  EXPECT_EQ(result.zero, source.size());
}

TEST(RollingBounds, ShufflingBlocksLosesNone) {
  constexpr std::size_t kBlock = 1024;
  const Content basis = random_content(500 * kBlock, 7);
  std::vector<std::size_t> order(500);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937_64(8));
  Content source;
  for (const std::size_t block : order) {
    const auto begin = basis.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
    source.insert(source.end(), begin, begin + kBlock);
  }
  const Rebuilt result = rebuild(basis, source, {.range_bytes = 10000});
  EXPECT_TRUE(equal(result.content, source));
  EXPECT_EQ(result.literal, 0U);
}

}  // namespace
}  // namespace volferry::delta
