// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/delta/content.h"

#include "engine/delta/rolling.h"

namespace volferry::delta {
namespace {

using testing::Content;
using testing::make_hash;
using testing::random_content;

RollingSignature sign(const Content& basis, std::uint32_t block_bytes) {
  RollingSignature signature;
  signature.block_bytes = block_bytes;
  append_signature(make_hash(), basis, signature);
  return signature;
}

TEST(RollingBlockBytes, IsAboutTheSquareRoot) {
  EXPECT_EQ(rolling_block_bytes(0), 1024U);
  EXPECT_EQ(rolling_block_bytes(1 << 20), 1024U);
  EXPECT_EQ(rolling_block_bytes(std::uint64_t{1} << 30), 32768U);
  EXPECT_EQ(rolling_block_bytes(std::uint64_t{1} << 40), 65536U);
  EXPECT_EQ(rolling_block_bytes(std::numeric_limits<std::uint64_t>::max()), 65536U);
  for (std::uint64_t size = std::uint64_t{1} << 21; size < std::uint64_t{1} << 32;
       size += size / 3) {
    const std::uint64_t block = rolling_block_bytes(size);
    EXPECT_EQ(block & (block - 1), 0U);
    EXPECT_LE(block * block, size * 2);
    EXPECT_GE(block * block * 4, size);
  }
}

TEST(AppendSignature, IgnoresTheTailAndContinues) {
  const Content basis = random_content(10 * 1024 + 5, 1);
  const RollingSignature whole = sign(basis, 1024);
  EXPECT_EQ(whole.weak.size(), 10U);
  EXPECT_EQ(whole.strong.size(), 10U);
  RollingSignature parts;
  parts.block_bytes = 1024;
  append_signature(make_hash(), {basis.data(), 4096}, parts);
  append_signature(make_hash(), {basis.data() + 4096, basis.size() - 4096}, parts);
  EXPECT_EQ(parts.weak, whole.weak);
  EXPECT_EQ(parts.strong, whole.strong);
}

TEST(AppendSignature, RefusesBlockSizesOutsideTheLimits) {
  const Content basis = random_content(300000, 1);
  for (const std::uint32_t block : {0U, 1U, 511U, 131073U, 0xffffffffU}) {
    EXPECT_TRUE(sign(basis, block).weak.empty()) << block;
  }
  EXPECT_EQ(sign(basis, 512).weak.size(), 585U);
  EXPECT_EQ(sign(basis, 131072).weak.size(), 2U);
}

TEST(RollingIndex, HoldsEqualBlocksOnceAndZerosNever) {
  Content basis = random_content(4 * 1024, 2);
  basis.insert(basis.end(), basis.begin(), basis.end());
  basis.resize(basis.size() + 3 * 1024, 0);
  EXPECT_EQ(RollingIndex(make_hash(), sign(basis, 1024)).blocks(), 4U);
}

TEST(RollingIndex, HoldsNearlyAllBlocks) {
  const Content basis = random_content(40000 * 512, 3);
  const RollingIndex index(make_hash(), sign(basis, 512));
  EXPECT_GE(index.blocks(), 39900U);
  EXPECT_EQ(index.block_bytes(), 512U);
  EXPECT_LE(index.bytes(), 40000U * 30);
}

TEST(RollingIndex, IsEmptyForSignaturesThatMakeNoSense) {
  RollingSignature signature = sign(random_content(8192, 4), 1024);
  for (const std::uint32_t block : {0U, 1U, 511U, 131073U, 0xffffffffU}) {
    signature.block_bytes = block;
    EXPECT_EQ(RollingIndex(make_hash(), signature).blocks(), 0U) << block;
  }
  signature.block_bytes = 1024;
  signature.offset = std::numeric_limits<std::uint64_t>::max() - 100;
  EXPECT_EQ(RollingIndex(make_hash(), signature).blocks(), 0U);
  EXPECT_EQ(RollingIndex(make_hash(), RollingSignature{}).blocks(), 0U);
}

TEST(RollingIndex, TakesTheShorterOfTwoLists) {
  RollingSignature signature = sign(random_content(8192, 5), 1024);
  signature.weak.resize(3);
  EXPECT_EQ(RollingIndex(make_hash(), signature).blocks(), 3U);
  signature.strong.resize(2);
  EXPECT_EQ(RollingIndex(make_hash(), signature).blocks(), 2U);
}

TEST(RollingIndex, BoundsBlocksWithOneWeakHash) {
  RollingSignature signature;
  signature.block_bytes = 1024;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    signature.weak.push_back(77);
    signature.strong.push_back(i + 1);
  }
  const RollingIndex index(make_hash(), signature);
  EXPECT_GE(index.blocks(), 1U);
  EXPECT_LE(index.blocks(), 16U);
}

}  // namespace
}  // namespace volferry::delta
