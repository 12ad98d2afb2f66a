// SPDX-License-Identifier: Apache-2.0
#include "engine/session/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::TempDir;
using testing::write_file;
using wire::RootKind;

TEST(Pairing, Table) {
  const RootKind m = RootKind::kMissing;
  const RootKind d = RootKind::kDirectory;
  const RootKind f = RootKind::kFile;
  const RootKind b = RootKind::kBlockDevice;
  struct Row {
    RootKind source, destination;
    bool sync, verify;
  };
  const Row rows[] = {
      {m, m, false, false}, {m, d, false, false}, {m, f, false, false}, {m, b, false, false},
      {d, m, true, false},  {d, d, true, true},   {d, f, false, false}, {d, b, false, false},
      {f, m, true, false},  {f, d, false, false}, {f, f, true, true},   {f, b, true, true},
      {b, m, true, false},  {b, d, false, false}, {b, f, true, true},   {b, b, true, true}};
  for (const Row& row : rows) {
    const std::string what =
        std::string(kind_name(row.source)) + " -> " + std::string(kind_name(row.destination));
    EXPECT_EQ(check_pairing(row.source, row.destination, false).has_value(), row.sync) << what;
    EXPECT_EQ(check_pairing(row.source, row.destination, true).has_value(), row.verify) << what;
  }
}

TEST(Pairing, TheRefusalNamesBothEnds) {
  const Status refused = check_pairing(RootKind::kFile, RootKind::kDirectory, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_THAT(refused.error().context, ::testing::HasSubstr("a regular file to a directory"));
}

class VolumeTest : public ::testing::Test {
 protected:
  TempDir dir_;
};

TEST_F(VolumeTest, KindsAndSizes) {
  dir_.make("d");
  write_file(dir_.at("f"), "12345");
  ASSERT_EQ(::mkfifo(dir_.at("p").c_str(), 0600), 0);
  const auto directory = open_source(dir_.at("d"), "");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->kind, RootKind::kDirectory);
  const auto file = open_source(dir_.at("f"), "");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->kind, RootKind::kFile);
  EXPECT_EQ(file->size, 5u);
  EXPECT_EQ(file->name, "f");
  EXPECT_EQ(open_source(dir_.at("p"), "").error().code, Code::kUsage);
  EXPECT_EQ(open_source(dir_.at("nothing"), "").error().code, Code::kUsage);
  EXPECT_EQ(open_source("", "").error().code, Code::kUsage);
}

TEST_F(VolumeTest, TheOperatorsOwnPathMayLeadOverLinks) {
  dir_.make("d");
  std::filesystem::create_directory_symlink("d", dir_.at("link"));
  EXPECT_TRUE(open_source(dir_.at("link"), ""));
  EXPECT_TRUE(open_source(dir_.at("link/"), ""));
}

TEST_F(VolumeTest, ThePeersPathMayNot) {
  dir_.make("root/a/b");
  dir_.make("outside");
  std::filesystem::create_directory_symlink("../outside", dir_.at("root/link"));
  std::filesystem::create_directory_symlink("b", dir_.at("root/a/inside"));
  const std::string root = dir_.at("root");
  EXPECT_TRUE(open_source(root, "a/b"));
  EXPECT_TRUE(open_source(root, "/a//b/"));
  for (const char* below : {"link", "a/inside", "..", "a/../..", ".", "a/./b", "a/nothing"}) {
    EXPECT_FALSE(open_source(root, below)) << below;
  }
  for (const char* below : {"link", "a/inside", "..", "../new", "nothing/new"}) {
    EXPECT_FALSE(open_destination(root, below)) << below;
  }
  EXPECT_FALSE(open_source(root, std::string("a\0b", 3)));
}

TEST_F(VolumeTest, MissingDestinationIsMade) {
  auto volume = open_destination(dir_.at("new"), "");
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->kind, RootKind::kMissing);
  EXPECT_EQ(volume->name, "new");
  ASSERT_TRUE(create_destination(*volume, RootKind::kDirectory));
  EXPECT_EQ(volume->kind, RootKind::kDirectory);
  EXPECT_TRUE(volume->fd);
  EXPECT_TRUE(std::filesystem::is_directory(dir_.at("new")));
  // But not its parents.
  EXPECT_FALSE(open_destination(dir_.at("no/such"), ""));
}

TEST_F(VolumeTest, SameAndNestedVolumesAreRefused) {
  dir_.make("a/b/c");
  dir_.make("other");
  write_file(dir_.at("f"), "x");
  write_file(dir_.at("g"), "x");
  ASSERT_EQ(::link(dir_.at("f").c_str(), dir_.at("h").c_str()), 0);
  const auto apart = [&](const char* source, const char* destination) {
    auto from = open_source(dir_.at(source), "");
    auto to = open_destination(dir_.at(destination), "");
    EXPECT_TRUE(from && to) << source << " " << destination;
    return check_apart(*from, *to).has_value();
  };
  EXPECT_FALSE(apart("a", "a"));
  EXPECT_FALSE(apart("a", "a/b/c"));
  EXPECT_FALSE(apart("a/b/c", "a"));
  EXPECT_FALSE(apart("a", "a/b/new"));
  EXPECT_TRUE(apart("a/b", "other"));
  EXPECT_TRUE(apart("a", "new"));
  EXPECT_FALSE(apart("f", "f"));
  EXPECT_FALSE(apart("f", "h"));
  EXPECT_TRUE(apart("f", "g"));
}

TEST_F(VolumeTest, OneWriterAtATime) {
  dir_.make("d");
  const auto first = open_destination(dir_.at("d"), "");
  const auto second = open_destination(dir_.at("d"), "");
  ASSERT_TRUE(first && second);
  {
    const auto lock = lock_destination(*first, std::chrono::milliseconds(0));
    ASSERT_TRUE(lock);
    const auto refused = lock_destination(*second, std::chrono::milliseconds(0));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUsage);
  }
  EXPECT_TRUE(lock_destination(*second, std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace volferry::session
