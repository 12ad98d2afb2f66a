// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/session/random_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/unit/session/support.h"

#include "engine/session/sizes.h"
#include "engine/transport/wire/limits.h"

namespace volferry::session::testing {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kBlock = 4096;

struct stat status_of(const std::string& path) {
  struct stat st{};
  EXPECT_EQ(::lstat(path.c_str(), &st), 0) << path;
  return st;
}

void punch(const std::string& path, std::uint64_t begin, std::uint64_t length) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(fd) << path;
  (void)::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                    static_cast<off_t>(length));
}

}  // namespace

std::string RandomTree::fresh_name() {
  static const char* const kShapes[] = {"n", ".hidden", "with space ", "\xff\xfe",
                                        "a-rather-long-name-"};
  return kShapes[pick(5)] + std::to_string(pick(1000)) + "_" + std::to_string(names_++);
}

std::uint64_t RandomTree::size() {
  const std::uint64_t edges[] = {
      0, 1, kBlock, kDeltaFileBytes, kPackFileBytes, wire::kRangeBytes, 2 * wire::kRangeBytes};
  if (chance(50)) {
    const std::uint64_t edge = edges[pick(7)];
    return edge + pick(3) - (edge > 0 ? 1 : 0);
  }
  if (chance(70)) return pick(64u << 10);
  return pick(5u << 20);
}

std::string RandomTree::content(std::uint64_t size) {
  std::string text;
  switch (pick(4)) {
    case 0:  // text that compresses
      while (text.size() < size) text += "line " + std::to_string(pick(100)) + " of a log\n";
      text.resize(size);
      return text;
    case 1:  // zero blocks between others
      text = noise(size, random_());
      for (std::uint64_t at = 0; at < size; at += kBlock) {
        if (chance(50))
          std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), std::min(kBlock, size - at),
                      '\0');
      }
      return text;
    case 2:  // one block over and over
      text = noise(kBlock, random_());
      while (text.size() < size) text += text;
      text.resize(size);
      return text;
    default:
      return noise(size, random_());
  }
}

void RandomTree::make_item(const std::string& path) {
  const bool root = ::geteuid() == 0;
  switch (pick(12)) {
    case 0:
      ASSERT_EQ(::symlink(("../target-" + std::to_string(pick(9))).c_str(), path.c_str()), 0);
      break;
    case 1:
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      break;
    case 2:
      if (root && chance(50)) {
        ASSERT_EQ(
            ::mknod(path.c_str(), (chance(50) ? S_IFCHR : S_IFBLK) | 0600, makedev(7, pick(300))),
            0);
      } else {
        ASSERT_EQ(::mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
      }
      break;
    case 3: {
      const std::vector<std::string> files = all(true);
      if (!files.empty()) {
        ASSERT_EQ(::link(any_of(files).c_str(), path.c_str()), 0) << path;
        break;
      }
      [[fallthrough]];
    }
    case 4: {  // a hole, data, a hole
      const std::uint64_t bytes = pick(5u << 20);
      write_file(path, content(pick(200'000)));
      ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
      if (bytes > 0) punch(path, pick(bytes) / kBlock * kBlock, 16 * kBlock);
      break;
    }
    default:
      write_file(path, content(size()));
      break;
  }
}

void RandomTree::fill_directory(const std::string& path, unsigned depth) {
  const std::uint64_t count = 3 + pick(8);
  for (std::uint64_t i = 0; i < count; ++i) make_item(path + "/" + fresh_name());
  if (depth == 0) return;
  const std::uint64_t below = 1 + pick(2);
  for (std::uint64_t i = 0; i < below; ++i) {
    const std::string child = path + "/" + fresh_name();
    fs::create_directory(child);
    fill_directory(child, depth - 1);
  }
}

void RandomTree::fill() { fill_directory(root_, 2); }

std::vector<std::string> RandomTree::all(bool files_only) const {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (!files_only || (entry.is_regular_file() && !entry.is_symlink()))
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void RandomTree::edit_file(const std::string& path) {
  const struct stat before = status_of(path);
  const auto bytes = static_cast<std::uint64_t>(before.st_size);
  std::string text = read_file(path);
  switch (keep_mtimes_ ? 4 : pick(6)) {
    case 0:
      text += content(1 + pick(300'000));
      break;
    case 1:
      text.resize(pick(bytes + 1));
      break;
    case 2:
      text.insert(pick(bytes + 1), noise(1 + pick(5000), random_()));
      break;
    case 3:
      text.erase(pick(bytes + 1), 1 + pick(9000));
      break;
    case 5: {
      if (bytes > 0) punch(path, pick(bytes), 32 * kBlock);
      return;
    }
    default:
      if (bytes == 0) return;
      for (std::uint64_t i = 1 + pick(6); i > 0; --i) {
        const std::uint64_t at = pick(bytes) / kBlock * kBlock;
        const std::string block = noise(std::min(kBlock, bytes - at), random_());
        text.replace(at, block.size(), block);
      }
      break;
  }
  write_file(path, text, before.st_mode & 07777);
  if (keep_mtimes_) {
    set_mtime(path, before.st_mtim.tv_sec, static_cast<std::uint32_t>(before.st_mtim.tv_nsec));
  }
}

// Something else takes the name, whatever either is.
void RandomTree::replace(const std::string& path) {
  fs::remove_all(path);
  if (!chance(30)) return make_item(path);
  fs::create_directory(path);
  fill_directory(path, 0);
}

void RandomTree::edit(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const std::vector<std::string> items = all(false);
    const std::vector<std::string> files = all(true);
    if (items.empty() || files.empty()) return make_item(root_ + "/" + fresh_name());
    const std::string item = any_of(items);
    const std::uint64_t kind = pick(10);
    if (kind < 4) {
      edit_file(any_of(files));
    } else if (kind == 4) {
      replace(item);
    } else if (kind == 5) {
      fs::remove_all(item);
    } else if (kind == 6) {
      const std::string to = fs::path(item).parent_path().string() + "/" + fresh_name();
      fs::rename(item, to);
    } else if (kind == 7) {  // hard links regrouped
      const std::string file = any_of(files);
      const std::string other = any_of(files);
      if (file != other) {
        fs::remove(other);
        ASSERT_EQ(::link(file.c_str(), other.c_str()), 0);
      }
    } else if (kind == 8) {
      make_item(fs::path(item).parent_path().string() + "/" + fresh_name());
    } else if (!fs::is_symlink(item)) {
      ASSERT_EQ(::chmod(item.c_str(), static_cast<mode_t>(0700 | pick(0100))), 0);
      (void)set_attribute(item, "user.edited", noise(1 + pick(40), random_()));
    }
  }
}

void RandomTree::dress() {
  std::vector<std::string> paths = all(false);
  // Children first: work inside a directory changes its times.
  std::sort(paths.begin(), paths.end(), std::greater<>());
  paths.push_back(root_);
  for (const std::string& path : paths) {
    const struct stat st = status_of(path);
    const bool link = S_ISLNK(st.st_mode);
    if (::geteuid() == 0 && chance(30)) {
      ASSERT_EQ(
          ::lchown(path.c_str(), static_cast<uid_t>(pick(3000)), static_cast<gid_t>(pick(3000))),
          0);
    }
    if (!link) {
      // As root any mode will do; others must be able to read what they compare.
      const auto needed = static_cast<mode_t>(::geteuid() == 0 ? 0 : 0700);
      const auto special = static_cast<mode_t>(chance(10) ? pick(8) << 9 : 0);
      ASSERT_EQ(::chmod(path.c_str(), static_cast<mode_t>(pick(01000)) | needed | special), 0);
      if (chance(20) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        (void)set_attribute(path, "user.note", noise(pick(300), random_()));
      }
    }
    const auto seconds =
        static_cast<std::int64_t>(chance(10) ? -static_cast<std::int64_t>(pick(1u << 30))
                                             : static_cast<std::int64_t>(pick(1ull << 33)));
    set_mtime(path, seconds, static_cast<std::uint32_t>(pick(1'000'000'000)));
  }
}

}  // namespace volferry::session::testing
