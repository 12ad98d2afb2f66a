// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/zero.h"

#include <gtest/gtest.h>

#include "tests/unit/delta/content.h"

#include "engine/delta/internal/zero_run.h"

namespace volferry::delta {
namespace {

using testing::Content;

TEST(IsZero, IsTrueForNothing) { EXPECT_TRUE(is_zero({})); }

TEST(IsZero, SeesEveryByteAtEveryLengthWithoutReadingPastTheEnd) {
  const testing::GuardedPages pages;
  for (std::size_t length = 0; length <= 300; ++length) {
    for (const base::MutBytes data : {pages.tail(length), pages.head(length)}) {
      std::memset(pages.begin(), 0xff, pages.size());
      if (length > 0) std::memset(data.data(), 0, length);
      ASSERT_TRUE(is_zero(data)) << length;
      for (std::size_t at = 0; at < length; ++at) {
        data[at] = 0x80;
        ASSERT_FALSE(is_zero(data)) << length << " bytes, differing at " << at;
        data[at] = 0;
      }
    }
  }
}

TEST(IsZero, SeesEveryByteOfABlockAtEveryAlignment) {
  Content content(kBlockBytes + 64, 0);
  for (std::size_t shift = 0; shift < 64; ++shift) {
    const base::Bytes block(content.data() + shift, kBlockBytes);
    for (std::size_t at = 0; at < kBlockBytes; at += 61) {
      content[shift + at] = 1;
      ASSERT_FALSE(is_zero(block)) << shift << "+" << at;
      content[shift + at] = 0;
    }
    content[shift + kBlockBytes - 1] = 1;
    ASSERT_FALSE(is_zero(block)) << "last byte at shift " << shift;
    content[shift + kBlockBytes - 1] = 0;
    ASSERT_TRUE(is_zero(block));
  }
}

TEST(ZeroPrefix, StopsAtTheFirstOtherByte) {
  Content content(2000, 0);
  for (std::size_t at = 0; at < content.size(); ++at) {
    content[at] = 9;
    ASSERT_EQ(internal::zero_prefix(content), at);
    content[at] = 0;
  }
}

TEST(FindZeroRun, FindsRunsOfABlockInTheirWholeLengthAndNoShorterOnes) {
  for (std::size_t begin = 1; begin < 5000; begin += 97) {
    for (const std::size_t length : {4095UL, 4096UL, 4097UL, 9000UL}) {
      Content content(begin + length + 500, 1);
      std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(begin), length, 0);
      const internal::ZeroRun run = internal::find_zero_run(content, 0);
      if (length < 4096) {
        ASSERT_TRUE(run.empty());
      } else {
        ASSERT_EQ(run.begin, begin);
        ASSERT_EQ(run.end, begin + length);
      }
    }
  }
}

TEST(FindZeroRun, NeverBeginsBeforeTheStart) {
  const Content content(10000, 0);
  const internal::ZeroRun run = internal::find_zero_run(content, 3000);
  EXPECT_EQ(run.begin, 3000U);
  EXPECT_EQ(run.end, 10000U);
}

}  // namespace
}  // namespace volferry::delta
