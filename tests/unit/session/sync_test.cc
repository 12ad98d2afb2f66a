// SPDX-License-Identifier: Apache-2.0
// Single cases of whole syncs, each local, pushed and pulled.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/unit/session/support.h"

#include "engine/session/temp_name.h"

namespace volferry::session {
namespace {

namespace fs = std::filesystem;

using testing::differences;
using ::testing::ElementsAre;
using testing::exists;
using ::testing::IsEmpty;
using testing::LoopbackServer;
using testing::noise;
using testing::quick_options;
using testing::read_file;
using testing::Recorder;
using testing::TempDir;
using testing::text_of;
using testing::write_file;

constexpr std::uint64_t kMiB = 1u << 20;

enum class Way : std::uint8_t { kLocal, kPush, kPull };

class SyncTest : public ::testing::TestWithParam<Way> {
 protected:
  SyncTest() {
    source_ = dir_.make("source");
    destination_ = dir_.make("destination");
    options_.delete_extra = true;
    options_.itemize = true;
  }
  Summary run() { return run("source", "destination"); }
  Summary run(const std::string& from, const std::string& to) {
    if (GetParam() == Way::kLocal) {
      return testing::sync(LocalEndpoint{dir_.at(from)}, LocalEndpoint{dir_.at(to)}, options_,
                           recorder_);
    }
    const LoopbackServer server(dir_.path());
    if (GetParam() == Way::kPush) {
      return testing::sync(LocalEndpoint{dir_.at(from)}, server.endpoint(to), options_, recorder_);
    }
    return testing::sync(server.endpoint(from), LocalEndpoint{dir_.at(to)}, options_, recorder_);
  }
  Summary verify() {
    if (GetParam() == Way::kLocal) {
      return testing::verify(LocalEndpoint{source_}, LocalEndpoint{destination_}, options_,
                             recorder_);
    }
    const LoopbackServer server(dir_.path());
    if (GetParam() == Way::kPush) {
      return testing::verify(LocalEndpoint{source_}, server.endpoint("destination"), options_,
                             recorder_);
    }
    return testing::verify(server.endpoint("source"), LocalEndpoint{destination_}, options_,
                           recorder_);
  }
  void expect_equal(int exit_code = 0) {
    const Summary summary = run();
    EXPECT_EQ(summary.exit_code(), exit_code) << text_of(summary);
    EXPECT_THAT(differences(source_, destination_), IsEmpty());
  }
  static void link(const std::string& from, const std::string& to) {
    ASSERT_EQ(::link(from.c_str(), to.c_str()), 0) << std::strerror(errno);
  }

  TempDir dir_;
  std::string source_;
  std::string destination_;
  SyncOptions options_ = quick_options();
  Recorder recorder_;
};

// Every type at the source meets every type at the destination, as a lone name and as the second
// of a hard link pair.
TEST_P(SyncTest, EveryTypeOverEveryType) {
  const std::string kinds = "flpdD-";
  const auto make = [](const std::string& path, char kind) {
    if (kind == 'f') write_file(path, "file " + path.substr(path.size() - 2));
    if (kind == 'l') fs::create_symlink("nowhere", path);
    if (kind == 'p') {
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    }
    if (kind == 'd') fs::create_directory(path);
    if (kind == 'D') {
      fs::create_directories(path + "/sub");
      write_file(path + "/sub/inner", "x");
    }
  };
  for (const char want : kinds) {
    for (const char old : kinds) {
      const std::string name{want, old};
      make(source_ + "/" + name, want);
      make(destination_ + "/" + name, old);
      if (want != 'f' && want != 'p') continue;
      make(destination_ + "/z" + name, old);
      link(source_ + "/" + name, source_ + "/z" + name);
    }
  }
  expect_equal();
}

TEST_P(SyncTest, LargeFileOverADirectory) {
  write_file(source_ + "/a", noise(2 * kMiB, 1));
  fs::create_directories(destination_ + "/a/b/c");
  write_file(destination_ + "/a/b/f", "x");
  expect_equal();
}

TEST_P(SyncTest, HardLinksAreRegrouped) {
  for (const char* name : {"a", "b", "c", "d"}) write_file(source_ + "/" + name, "same content");
  fs::remove(source_ + "/b");
  link(source_ + "/a", source_ + "/b");
  fs::remove(source_ + "/d");
  link(source_ + "/c", source_ + "/d");
  expect_equal();
  // At the destination another two are one, with the same size and time.
  fs::remove(destination_ + "/a");
  fs::remove(destination_ + "/b");
  fs::remove(destination_ + "/d");
  link(destination_ + "/c", destination_ + "/a");
  link(destination_ + "/c", destination_ + "/b");
  link(destination_ + "/c", destination_ + "/d");
  for (const char* name : {"a", "c"}) testing::set_mtime(source_ + "/" + name, 5000, 5);
  testing::set_mtime(destination_ + "/c", 5000, 5);
  expect_equal();
}

TEST_P(SyncTest, InPlaceLeavesOtherNamesOfTheOldFileAlone) {
  options_.inplace = true;
  options_.delete_extra = false;
  write_file(source_ + "/f", noise(3 * kMiB, 1));
  const std::string old = noise(3 * kMiB, 2);
  write_file(destination_ + "/f", old);
  link(destination_ + "/f", dir_.at("elsewhere"));
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  EXPECT_EQ(read_file(dir_.at("elsewhere")), old);
  EXPECT_EQ(read_file(destination_ + "/f"), noise(3 * kMiB, 1));
}

TEST_P(SyncTest, InPlaceKeepsTheInode) {
  options_.inplace = true;
  std::string content = noise(3 * kMiB, 1);
  write_file(destination_ + "/f", content);
  struct stat before{};
  ASSERT_EQ(::stat((destination_ + "/f").c_str(), &before), 0);
  content.replace(kMiB + 4096, 100, std::string(100, 'x'));
  content += "more";
  write_file(source_ + "/f", content);
  expect_equal();
  struct stat after{};
  ASSERT_EQ(::stat((destination_ + "/f").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST_P(SyncTest, ChangedBlocksAloneTravel) {
  std::string content = noise(8 * kMiB, 1);
  write_file(destination_ + "/f", content);
  testing::set_mtime(destination_ + "/f", 1, 0);
  content.replace(5 * kMiB + 8192, 4096, noise(4096, 2));
  write_file(source_ + "/f", content);
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  EXPECT_THAT(differences(source_, destination_), IsEmpty());
  if (GetParam() != Way::kLocal) {
    EXPECT_EQ(summary.literal_bytes, 4096u);
    EXPECT_LT(summary.wire_sent + summary.wire_received, 100'000u);
  }
}

TEST_P(SyncTest, ShiftedContentIsFound) {
  if (GetParam() == Way::kLocal) GTEST_SKIP() << "local copies do not search";
  const std::string content = noise(8 * kMiB, 1);
  write_file(destination_ + "/f", content);
  testing::set_mtime(destination_ + "/f", 1, 0);
  write_file(source_ + "/f", noise(1000, 2) + content);
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  EXPECT_THAT(differences(source_, destination_), IsEmpty());
  EXPECT_LT(summary.literal_bytes, 200'000u);
}

// The rolling search of a window that lies wholly past the basis.
TEST_P(SyncTest, DataFarPastTheOldEnd) {
  write_file(destination_ + "/f", noise(64 << 10, 1));
  write_file(source_ + "/f", noise(64 << 10, 1));
  const base::UniqueFd fd(::open((source_ + "/f").c_str(), O_RDWR | O_CLOEXEC));
  const std::string tail = noise(kMiB, 2);
  constexpr off_t kFar = (3ll << 30) + 4096;
  ASSERT_EQ(::pwrite(fd.get(), tail.data(), tail.size(), kFar), static_cast<ssize_t>(tail.size()));
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  const base::UniqueFd have(::open((destination_ + "/f").c_str(), O_RDONLY | O_CLOEXEC));
  std::string got(tail.size(), '\0');
  ASSERT_EQ(::pread(have.get(), got.data(), got.size(), kFar), static_cast<ssize_t>(tail.size()));
  EXPECT_EQ(got, tail);
  struct stat st{};
  ASSERT_EQ(::fstat(have.get(), &st), 0);
  EXPECT_EQ(st.st_size, kFar + static_cast<off_t>(tail.size()));
  EXPECT_LT(static_cast<std::uint64_t>(st.st_blocks) * 512, 4 * kMiB);
}

TEST_P(SyncTest, DataThatBecameAHoleIsFreed) {
  for (const bool inplace : {false, true}) {
    options_.inplace = inplace;
    write_file(source_ + "/f", noise(4 * kMiB, 1));
    expect_equal();
    const base::UniqueFd fd(::open((source_ + "/f").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kMiB / 2, 2 * kMiB),
              0);
    expect_equal();
  }
}

TEST_P(SyncTest, DryRunWritesNothing) {
  write_file(source_ + "/new", "x");
  write_file(source_ + "/changed", "abc");
  write_file(destination_ + "/changed", "x");
  testing::set_mtime(source_ + "/changed", 9, 9);
  write_file(destination_ + "/extra", "x");
  fs::create_directory(source_ + "/d");
  write_file(source_ + "/d/inner", "x");
  const auto before = testing::tree_of(destination_);
  options_.dry_run = true;
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  EXPECT_THAT(differences(before, testing::tree_of(destination_), {}), IsEmpty());
  std::vector<std::string> codes;
  for (const ItemChangeEvent& event : recorder_.changes()) {
    if (event.path != "./") codes.push_back(event.code + " " + event.path);
  }
  EXPECT_THAT(codes, ::testing::UnorderedElementsAre("*deleting extra", ">f+++++++++ new",
                                                     ">f.st...... changed", "cd+++++++++ d/",
                                                     ">f+++++++++ d/inner"));
}

TEST_P(SyncTest, VerifyNamesEveryDifference) {
  write_file(source_ + "/same", "x");
  expect_equal();
  write_file(source_ + "/content", "abc");
  write_file(destination_ + "/content", "abd");
  for (const std::string& end : {source_, destination_}) testing::set_mtime(end + "/content", 9, 9);
  write_file(source_ + "/mode", "x", 0600);
  write_file(destination_ + "/mode", "x", 0644);
  for (const std::string& end : {source_, destination_}) testing::set_mtime(end + "/mode", 9, 9);
  write_file(source_ + "/missing", "x");
  write_file(destination_ + "/extra", "x");
  fs::create_symlink("a", source_ + "/target");
  fs::create_symlink("b", destination_ + "/target");
  write_file(source_ + "/type", "x");
  fs::create_symlink("b", destination_ + "/type");
  for (const std::string& end : {source_, destination_}) testing::set_mtime(end, 9, 9);
  const auto before = testing::tree_of(destination_);
  const Summary summary = verify();
  EXPECT_EQ(summary.exit_code(), 24) << text_of(summary);
  EXPECT_THAT(recorder_.found_lines(),
              ElementsAre("content: content", "extra: extra", "missing: missing", "mode: mode",
                          "target: target", "type: type"));
  EXPECT_THAT(differences(before, testing::tree_of(destination_), {}), IsEmpty());
}

TEST_P(SyncTest, ExcludedAndProtectedItemsStay) {
  write_file(source_ + "/a.o", "new");
  write_file(source_ + "/b", "x");
  fs::create_directory(destination_ + "/lost+found");
  fs::create_directory(destination_ + "/gone");
  write_file(destination_ + "/gone/keep.o", "old");
  write_file(destination_ + "/gone/not", "old");
  write_file(destination_ + "/a.o", "old");
  options_.filters = {{false, "*.o"}};
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  EXPECT_EQ(read_file(destination_ + "/a.o"), "old");
  EXPECT_EQ(read_file(destination_ + "/gone/keep.o"), "old");
  EXPECT_FALSE(exists(destination_ + "/gone/not"));
  EXPECT_TRUE(exists(destination_ + "/lost+found"));
  EXPECT_EQ(read_file(destination_ + "/b"), "x");
}

TEST_P(SyncTest, WithoutDeleteExtrasStay) {
  options_.delete_extra = false;
  write_file(destination_ + "/extra", "x");
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0);
  EXPECT_TRUE(exists(destination_ + "/extra"));
  EXPECT_EQ(summary.files_deleted, 0u);
}

TEST_P(SyncTest, LeftOverTemporariesGo) {
  write_file(source_ + "/f", noise(2 * kMiB, 1));
  write_file(destination_ + "/" + temp_name("f"), noise(kMiB, 1), 0600);  // goes on from there
  write_file(destination_ + "/" + temp_name("gone"), "x");
  fs::create_directory(destination_ + "/" + temp_name("dir"));
  options_.delete_extra = false;
  expect_equal();
}

TEST_P(SyncTest, OneBadItemDoesNotStopTheOthers) {
  write_file(source_ + "/a", "x");
  write_file(source_ + "/z", "x");
  write_file(source_ + "/bad", "new");
  write_file(destination_ + "/bad", "old");
  testing::set_mtime(source_ + "/bad", 9, 9);
  // Nobody, not even root, replaces an immutable file.
  const std::string command = "chattr +i '" + destination_ + "/bad' 2>/dev/null";
  if (::geteuid() != 0 || std::system(command.c_str()) != 0)
    GTEST_SKIP() << "no immutable files here";
  const Summary summary = run();
  const std::string undo = "chattr -i '" + destination_ + "/bad'";
  ASSERT_EQ(std::system(undo.c_str()), 0);
  EXPECT_EQ(summary.exit_code(), 3) << text_of(summary);
  ASSERT_EQ(summary.errors.size(), 1u);
  EXPECT_EQ(summary.errors[0].path, "bad");
  EXPECT_EQ(read_file(destination_ + "/z"), "x");
  EXPECT_EQ(read_file(destination_ + "/bad"), "old");
}

TEST_P(SyncTest, DeepTreesPastPathMax) {
  const std::string name(200, 'n');
  base::UniqueFd at = testing::open_dir(source_);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    at = base::UniqueFd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  const base::UniqueFd file(::openat(at.get(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), "deep", 4), 4);
  const Summary first = run();
  EXPECT_EQ(first.exit_code(), 0) << text_of(first);
  const Summary second = verify();
  EXPECT_EQ(second.exit_code(), 0) << text_of(second);
  EXPECT_EQ(second.files_total, 1u);
  EXPECT_EQ(second.dirs_total, 41u);
}

TEST_P(SyncTest, MountPointsAreNotCrossed) {
  fs::create_directory(source_ + "/mount");
  fs::create_directories(destination_ + "/mount/kept");
  if (::mount("tmpfs", (source_ + "/mount").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted here: " << std::strerror(errno);
  }
  write_file(source_ + "/mount/inside", "x");
  write_file(source_ + "/z", "x");
  options_.one_file_system = true;
  const Summary summary = run();
  EXPECT_EQ(::umount((source_ + "/mount").c_str()), 0);
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  EXPECT_FALSE(exists(destination_ + "/mount/inside"));
  EXPECT_TRUE(exists(destination_ + "/mount/kept"));
  EXPECT_TRUE(exists(destination_ + "/z"));
}

TEST_P(SyncTest, AFullDestinationIsSaid) {
  if (::mount("tmpfs", destination_.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted here: " << std::strerror(errno);
  }
  write_file(destination_ + "/f", "old");
  write_file(source_ + "/f", noise(4 * kMiB, 1));
  const Summary full = run();
  EXPECT_EQ(full.exit_code(), 20) << text_of(full);
  EXPECT_EQ(read_file(destination_ + "/f"), "old");
  // Room that deletion makes is used.
  write_file(source_ + "/f", noise(3 * kMiB / 2, 2));
  write_file(destination_ + "/extra", noise(3 * kMiB / 2, 3));
  const Summary fits = run();
  EXPECT_EQ(fits.exit_code(), 0) << text_of(fits);
  EXPECT_EQ(read_file(destination_ + "/f"), noise(3 * kMiB / 2, 2));
  EXPECT_EQ(::umount2(destination_.c_str(), MNT_DETACH), 0);
}

TEST_P(SyncTest, WithoutPermsAndTimes) {
  options_.perms = false;
  options_.times = false;
  options_.owner = false;
  write_file(source_ + "/f", "x", 04755);
  testing::set_mtime(source_ + "/f", 5, 5);
  const Summary summary = run();
  EXPECT_EQ(summary.exit_code(), 0) << text_of(summary);
  struct stat st{};
  ASSERT_EQ(::stat((destination_ + "/f").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07000, 0u);
  EXPECT_NE(st.st_mtim.tv_sec, 5);
}

TEST_P(SyncTest, ImageToFile) {
  write_file(dir_.at("image"), noise(3 * kMiB + 17, 1));
  const Summary first = run("image", "copy");
  EXPECT_EQ(first.exit_code(), 0) << text_of(first);
  EXPECT_EQ(read_file(dir_.at("copy")), noise(3 * kMiB + 17, 1));
  write_file(dir_.at("image"), noise(100, 2));
  const Summary second = run("image", "copy");
  EXPECT_EQ(second.exit_code(), 0) << text_of(second);
  EXPECT_EQ(read_file(dir_.at("copy")), noise(100, 2));
  EXPECT_EQ(run("image", "destination").exit_code(), 2);
  EXPECT_EQ(run("source", "copy").exit_code(), 2);
}

TEST_P(SyncTest, MissingEnds) {
  write_file(source_ + "/f", "x");
  EXPECT_EQ(run("nothing", "destination").exit_code(), 2);
  const Summary made = run("source", "fresh");
  EXPECT_EQ(made.exit_code(), 0) << text_of(made);
  EXPECT_THAT(differences(source_, dir_.at("fresh")), IsEmpty());
}

std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  const char* const names[] = {"Local", "Push", "Pull"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Ways, SyncTest, ::testing::Values(Way::kLocal, Way::kPush, Way::kPull),
                         name_of);

}  // namespace
}  // namespace volferry::session
