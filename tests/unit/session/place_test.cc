// SPDX-License-Identifier: Apache-2.0
#include "engine/session/place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::exists;
using testing::TempDir;
using testing::write_file;

// What is made under a name: nothing, a file, a link, a fifo, an empty or a full directory.
void make(const std::string& path, char kind) {
  switch (kind) {
    case '-':
      return;
    case 'f':
      return write_file(path, "content of " + path);
    case 'l':
      std::filesystem::create_symlink("nowhere", path);
      return;
    case 'p':
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      return;
    case 'D':
      std::filesystem::create_directories(path + "/sub/deeper");
      write_file(path + "/sub/file", "x");
      return;
    default:
      std::filesystem::create_directory(path);
      return;
  }
}

class PlaceTest : public ::testing::Test {
 protected:
  Status put(bool filtered) {
    Remover remover(options_, tally_, true);
    return place(fd_.get(), "temp", "name", "name", remover, filtered);
  }
  TempDir dir_;
  base::UniqueFd fd_ = testing::open_dir(dir_.path());
  Observer observer_;
  Tally tally_{observer_};
  VolumeOptions options_;
};

TEST_F(PlaceTest, EveryTypeReplacesEveryOther) {
  for (const char fresh : {'f', 'l', 'p', 'd'}) {
    for (const char old : {'-', 'f', 'l', 'p', 'd', 'D'}) {
      for (const bool filtered : {false, true}) {
        const std::string what = std::string{fresh} + " over " + old;
        make(dir_.at("temp"), fresh);
        struct stat want{};
        ASSERT_EQ(::lstat(dir_.at("temp").c_str(), &want), 0);
        make(dir_.at("name"), old);
        const Status placed = put(filtered);
        EXPECT_TRUE(placed) << what << ": " << (placed ? "" : placed.error().message());
        struct stat have{};
        EXPECT_EQ(::lstat(dir_.at("name").c_str(), &have), 0) << what;
        EXPECT_EQ(have.st_ino, want.st_ino) << what;
        EXPECT_FALSE(exists(dir_.at("temp"))) << what;
        std::filesystem::remove_all(dir_.at("name"));
      }
    }
  }
  EXPECT_EQ(tally_.files_deleted.load(), 0u);
}

TEST_F(PlaceTest, ADirectoryThatHoldsExcludedItemsStays) {
  options_.filter = Filter({{false, "*.keep"}});
  make(dir_.at("name"), 'D');
  write_file(dir_.at("name/sub/precious.keep"), "precious");
  make(dir_.at("temp"), 'f');
  const Status placed = put(true);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().os_errno, ENOTEMPTY);
  EXPECT_EQ(testing::read_file(dir_.at("name/sub/precious.keep")), "precious");
}

TEST_F(PlaceTest, AMissingTemporaryIsAnError) {
  make(dir_.at("name"), 'f');
  const Status placed = put(false);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().os_errno, ENOENT);
  EXPECT_TRUE(exists(dir_.at("name")));
}

}  // namespace
}  // namespace volferry::session
