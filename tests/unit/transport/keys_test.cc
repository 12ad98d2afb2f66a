// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/transport/support.h"

#include "engine/transport/connect.h"

namespace volferry::transport {
namespace {

using testing::TempDir;

constexpr char kHex[] = "00112233445566778899aabbccddeeff";

void expect_usage(const std::string& path, const std::string& part) {
  const auto entries = read_psk_file(path);
  ASSERT_FALSE(entries) << path;
  EXPECT_EQ(entries.error().code, Code::kUsage);
  EXPECT_NE(entries.error().message().find(part), std::string::npos) << entries.error().message();
  // Keys must not reach a log by way of an error text.
  EXPECT_EQ(entries.error().message().find("0011223344"), std::string::npos);
}

TEST(PskFile, ReadsLinesCommentsAndBlanks) {
  const TempDir dir;
  const std::string path =
      dir.write("psk", std::string("# keys\n\nalpha:") + kHex + "\r\n  beta:" + kHex + kHex, 0600);
  const auto entries = read_psk_file(path);
  ASSERT_TRUE(entries) << entries.error().message();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].identity, "alpha");
  EXPECT_EQ((*entries)[0].key.size(), 16u);
  EXPECT_EQ((*entries)[0].key[1], 0x11);
  EXPECT_EQ((*entries)[1].identity, "beta");
  EXPECT_EQ((*entries)[1].key.size(), 32u);
}

TEST(PskFile, RefusesBadContent) {
  const TempDir dir;
  expect_usage(dir.file("missing"), "No such file");
  expect_usage(dir.write("a", "# nothing\n", 0600), "no IDENTITY:HEX");
  expect_usage(dir.write("b", "alpha:0011\n", 0600), "line 1");
  expect_usage(dir.write("c", std::string("\nalpha:") + kHex + "zz\n", 0600), "line 2");
  expect_usage(dir.write("d", std::string(":") + kHex, 0600), "line 1");
  expect_usage(dir.write("e", kHex, 0600), "line 1");
  expect_usage(dir.write("f", std::string("x:") + kHex + kHex + kHex + kHex + "00", 0600), "64");
  expect_usage(dir.write("g", std::string("x:") + kHex + "\nx:" + kHex, 0600), "repeats");
  std::filesystem::create_directory(dir.file("h"));
  ASSERT_EQ(::chmod(dir.file("h").c_str(), 0700), 0);
  expect_usage(dir.file("h"), "regular file");
}

TEST(PskFile, RefusesWhatOthersCanRead) {
  const TempDir dir;
  const std::string text = std::string("x:") + kHex;
  for (const unsigned mode : {0640u, 0604u, 0660u, 0644u}) {
    expect_usage(dir.write("psk", text, mode), "chmod 600");
  }
  EXPECT_TRUE(read_psk_file(dir.write("psk", text, 0400)));
  EXPECT_TRUE(check_key_file(dir.file("psk")));
}

TEST(PskFile, RefusesALinkInAFolderThatEveryoneCanWrite) {
  const TempDir dir;
  const std::string real = dir.write("psk", std::string("x:") + kHex, 0600);
  std::filesystem::create_directory(dir.file("open"));
  const std::string link = dir.file("open/psk");
  std::filesystem::create_symlink(real, link);
  ASSERT_EQ(::chmod(dir.file("open").c_str(), 01777), 0);
  expect_usage(link, "symbolic link");
  ASSERT_EQ(::chmod(dir.file("open").c_str(), 0755), 0);
  EXPECT_TRUE(read_psk_file(link));
}

TEST(PskFile, TakesASecretMountAsItIs) {
  const TempDir dir;
  const std::string mount = dir.file("keys");
  std::filesystem::create_directories(mount + "/..2026_01_01");
  (void)dir.write("keys/..2026_01_01/psk", std::string("x:") + kHex, 0644);
  std::filesystem::create_symlink("..2026_01_01", mount + "/..data");
  std::filesystem::create_symlink("..data/psk", mount + "/psk");
  ASSERT_EQ(::chmod(mount.c_str(), 01777), 0);
  EXPECT_TRUE(read_psk_file(mount + "/psk"));
  EXPECT_TRUE(read_psk_file(mount + "/..data/psk"));
  // A file beside it that is no part of the mount stays under the rule.
  expect_usage(dir.write("keys/other", std::string("x:") + kHex, 0644), "chmod 600");
}

TEST(KeyFile, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const TempDir dir;
  const std::string path = dir.write("key", "k", 0600);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(check_key_file(path));
}

}  // namespace
}  // namespace volferry::transport
