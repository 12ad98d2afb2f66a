// SPDX-License-Identifier: Apache-2.0
#include "engine/io/metadata.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

namespace volferry::io {

namespace {

FileType file_type(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFLNK:
      return FileType::kSymlink;
    case S_IFIFO:
      return FileType::kFifo;
    case S_IFSOCK:
      return FileType::kSocket;
    case S_IFCHR:
      return FileType::kCharDevice;
    case S_IFBLK:
      return FileType::kBlockDevice;
    default:
      return FileType::kFile;
  }
}

Metadata from_stat(const struct stat& st) {
  Metadata meta;
  meta.type = file_type(st.st_mode);
  meta.mode = static_cast<std::uint16_t>(st.st_mode & 07777);
  meta.uid = st.st_uid;
  meta.gid = st.st_gid;
  meta.size = static_cast<std::uint64_t>(st.st_size);
  meta.blocks = static_cast<std::uint64_t>(st.st_blocks);
  meta.mtime = {st.st_mtim.tv_sec, static_cast<std::uint32_t>(st.st_mtim.tv_nsec)};
  meta.ctime = {st.st_ctim.tv_sec, static_cast<std::uint32_t>(st.st_ctim.tv_nsec)};
  meta.nlink = st.st_nlink;
  meta.dev = st.st_dev;
  meta.ino = st.st_ino;
  meta.rdev = st.st_rdev;
  return meta;
}

}  // namespace

Result<Metadata> stat_at(int dirfd, const std::string& name) {
  struct stat st;
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name.empty() ? AT_EMPTY_PATH : 0);
  if (::fstatat(dirfd, name.c_str(), &st, flags) != 0) return fail_sys("stat " + name);
  return from_stat(st);
}

Result<Metadata> stat_fd(int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return fail_sys("stat of an open file");
  return from_stat(st);
}

bool unchanged(const Metadata& before, const Metadata& after) {
  return before.size == after.size && before.mtime == after.mtime && before.ctime == after.ctime;
}

Result<std::string> read_link_at(int dirfd, const std::string& name) {
  // The kernel's limit is PATH_MAX - 1 bytes; one more byte of room tells a cut target from a whole
  // one.
  std::string target(4097, '\0');
  const ssize_t length = ::readlinkat(dirfd, name.c_str(), target.data(), target.size());
  if (length < 0) return fail_sys("readlink " + name);
  target.resize(static_cast<std::size_t>(length));
  return target;
}

Status set_owner_at(int dirfd, const std::string& name, std::uint32_t uid, std::uint32_t gid) {
  const int flags = name.empty() ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
  if (::fchownat(dirfd, name.c_str(), uid, gid, flags) != 0) return fail_sys("chown " + name);
  return {};
}

Status set_mode_at(int dirfd, const std::string& name, std::uint16_t mode) {
  if (name.empty()) {
    if (::fchmod(dirfd, mode) != 0) return fail_sys("chmod");
    return {};
  }
  // fchmodat has no AT_SYMLINK_NOFOLLOW in the kernel before 6.6 and glibc emulates it over /proc:
  // pin the object by an O_PATH descriptor first, so that a link swapped in is never followed.
  const int fd = ::openat(dirfd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail_sys("chmod " + name);
  struct stat st;
  int failed = 0;
  if (::fstat(fd, &st) != 0) {
    failed = errno;
  } else if (S_ISLNK(st.st_mode)) {
    failed = ELOOP;
  } else if (::chmod(("/proc/self/fd/" + std::to_string(fd)).c_str(), mode) != 0) {
    failed = errno;
  }
  ::close(fd);
  if (failed != 0) return fail_sys("chmod " + name, failed);
  return {};
}

Status set_mtime_at(int dirfd, const std::string& name, Timestamp mtime) {
  const struct timespec times[2] = {
      {0, UTIME_OMIT}, {static_cast<time_t>(mtime.seconds), static_cast<long>(mtime.nanoseconds)}};
  const int failed = name.empty() ? ::futimens(dirfd, times)
                                  : ::utimensat(dirfd, name.c_str(), times, AT_SYMLINK_NOFOLLOW);
  if (failed != 0) return fail_sys("utimens " + name);
  return {};
}

}  // namespace volferry::io
