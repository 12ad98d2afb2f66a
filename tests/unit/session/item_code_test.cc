// SPDX-License-Identifier: Apache-2.0
#include "engine/session/item_code.h"

#include <gtest/gtest.h>

namespace volferry::session {
namespace {

using wire::EntryType;

TEST(ItemCode, NewItems) {
  EXPECT_EQ(item_code(EntryType::kFile, true, true, false, {}, '\0'), ">f+++++++++");
  EXPECT_EQ(item_code(EntryType::kDirectory, true, false, false, {}, '\0'), "cd+++++++++");
  EXPECT_EQ(item_code(EntryType::kSymlink, true, true, false, {}, '\0'), "cL+++++++++");
  EXPECT_EQ(item_code(EntryType::kFifo, true, true, false, {}, '\0'), "cS+++++++++");
  EXPECT_EQ(item_code(EntryType::kSocket, true, true, false, {}, '\0'), "cS+++++++++");
  EXPECT_EQ(item_code(EntryType::kCharDevice, true, true, false, {}, '\0'), "cD+++++++++");
  EXPECT_EQ(item_code(EntryType::kBlockDevice, true, true, false, {}, '\0'), "cD+++++++++");
}

TEST(ItemCode, HardLink) {
  EXPECT_EQ(item_code(EntryType::kFile, true, true, false, {}, 'h'), "hf+++++++++");
}

TEST(ItemCode, MetadataAlone) {
  EXPECT_EQ(item_code(EntryType::kFile, false, false, false, {.mtime = true}, '\0'), ".f..t......");
  EXPECT_EQ(item_code(EntryType::kFile, false, false, false, {.mode = true}, '\0'), ".f...p.....");
  EXPECT_EQ(
      item_code(EntryType::kDirectory, false, false, false, {.owner = true, .group = true}, '\0'),
      ".d....og...");
  EXPECT_EQ(item_code(EntryType::kFile, false, false, false, {.acl = true, .xattr = true}, '\0'),
            ".f.......ax");
}

TEST(ItemCode, Content) {
  EXPECT_EQ(item_code(EntryType::kFile, false, true, true, {.mtime = true}, '\0'), ">f.st......");
  EXPECT_EQ(item_code(EntryType::kFile, false, true, false, {.mtime = true}, '\0'), ">f..t......");
  // Neither size nor time told: found by comparing.
  EXPECT_EQ(item_code(EntryType::kFile, false, true, false, {}, '\0'), ">fc........");
  EXPECT_EQ(item_code(EntryType::kSymlink, false, true, false, {}, '\0'), "cLc........");
}

}  // namespace
}  // namespace volferry::session
