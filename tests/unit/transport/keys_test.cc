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

// A folder with files of mode 0600.
std::string key_folder(const TempDir& dir, const std::string& id, const std::string& psk) {
  static int count = 0;
  const std::string name = "keys" + std::to_string(++count);
  std::filesystem::create_directory(dir.file(name));
  if (!id.empty()) (void)dir.write(name + "/id", id, 0600);
  if (!psk.empty()) (void)dir.write(name + "/psk", psk, 0600);
  return dir.file(name);
}

TEST(PskFolder, ReadsAPairOrALineFile) {
  const TempDir dir;
  for (const char* end : {"", "\n", "\r\n"}) {
    const auto pair =
        read_psk_folder(key_folder(dir, std::string("a b:c") + end, std::string(kHex) + end));
    ASSERT_TRUE(pair) << pair.error().message();
    ASSERT_EQ(pair->size(), 1u);
    EXPECT_EQ((*pair)[0].identity, "a b:c");
    EXPECT_EQ((*pair)[0].key.size(), 16u);
  }
  const std::string folder = key_folder(dir, "", "");
  std::filesystem::rename(dir.write("lines", std::string("x:") + kHex + "\ny:" + kHex + "\n", 0600),
                          folder + "/psk.txt");
  const auto lines = read_psk_folder(folder);
  ASSERT_TRUE(lines) << lines.error().message();
  EXPECT_EQ(lines->size(), 2u);
}

TEST(PskFolder, RefusesWhatIsNoKey) {
  const TempDir dir;
  const auto expect_refused = [](const std::string& folder, const std::string& part) {
    const auto entries = read_psk_folder(folder);
    ASSERT_FALSE(entries) << folder;
    EXPECT_EQ(entries.error().code, Code::kUsage);
    EXPECT_NE(entries.error().message().find(part), std::string::npos) << entries.error().message();
    EXPECT_EQ(entries.error().message().find("0011223344"), std::string::npos);
  };
  expect_refused(dir.file("missing"), "psk.txt");
  expect_refused(key_folder(dir, "", "x"), "/id");
  expect_refused(key_folder(dir, "x", ""), "/psk");
  expect_refused(key_folder(dir, "x", std::string(kHex) + "0"), "hexadecimal");
  expect_refused(key_folder(dir, "x", std::string(kHex) + "\n\n"), "hexadecimal");
  expect_refused(key_folder(dir, "x", "00112233445566778899aabbccddee"), "16 to 64");
  expect_refused(key_folder(dir, "\n", kHex), "1 to 128");
  expect_refused(key_folder(dir, std::string(129, 'x'), kHex), "1 to 128");
  const std::string open = key_folder(dir, "x", kHex);
  ASSERT_EQ(::chmod((open + "/psk").c_str(), 0644), 0);
  expect_refused(open, "chmod 600");
}

}  // namespace
}  // namespace volferry::transport
