// SPDX-License-Identifier: Apache-2.0
// Each message at its largest fits one frame, where docs/protocol.md says so.
#include "engine/transport/wire/limits.h"

#include <gtest/gtest.h>

#include "engine/transport/wire/messages.h"

namespace volferry::wire {
namespace {

TEST(Limits, LargestRollingSignatureFits) {
  RollingSignature signature;
  signature.weak.assign(kMaxRollingBlocks, 0xffffffff);
  signature.strong.assign(kMaxRollingBlocks, ~0ull);
  const std::vector<std::uint8_t> head = encode(signature);
  EXPECT_LE(head.size(), kMaxHead);
  RollingSignature decoded;
  EXPECT_TRUE(decode(head, decoded));
  EXPECT_EQ(decoded, signature);
  signature.weak.push_back(0);
  signature.strong.push_back(0);
  EXPECT_FALSE(decode(encode(signature), decoded));
}

TEST(Limits, EntryWithTheMostAttributesFits) {
  DirList list;
  Entry entry{std::string(kMaxName, 'n'), {}};
  for (int i = 0; i < 127; ++i) {
    entry.meta.xattrs.push_back(
        {"user." + std::to_string(1000 + i), std::string(kMaxXattrValue, 'v')});
  }
  list.entries.push_back(entry);
  const std::vector<std::uint8_t> head = encode(list);
  EXPECT_LE(head.size(), kMaxHead);
  DirList decoded;
  EXPECT_TRUE(decode(head, decoded));
  list.entries[0].meta.xattrs.push_back({"user.2000", std::string(kMaxXattrValue, 'v')});
  EXPECT_FALSE(decode(encode(list), decoded));
}

TEST(Limits, OpsAtTheLimit) {
  RangeData data;
  data.ops.assign(kMaxOps, {OpKind::kSame, 1, 0});
  RangeData decoded;
  EXPECT_TRUE(decode(encode(data), decoded));
  data.ops.push_back({OpKind::kSame, 1, 0});
  EXPECT_FALSE(decode(encode(data), decoded));
}

TEST(Limits, ListEntriesAtTheLimit) {
  DirList list;
  for (std::size_t i = 0; i < kMaxListEntries; ++i) {
    list.entries.push_back({std::to_string(10000 + i), {}});
  }
  DirList decoded;
  EXPECT_TRUE(decode(encode(list), decoded));
  EXPECT_EQ(decoded, list);
  list.entries.push_back({"99999", {}});
  EXPECT_FALSE(decode(encode(list), decoded));
}

}  // namespace
}  // namespace volferry::wire
