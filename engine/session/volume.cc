// SPDX-License-Identifier: Apache-2.0
#include "engine/session/volume.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "engine/io/dir.h"
#include "engine/io/file.h"

namespace volferry::session {

namespace {

struct Split {
  std::string parent;
  std::string name;
};

Split split_path(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<std::vector<std::string>> components(const std::string& below) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : below + "/") {
    if (c != '/') {
      part += c;
      continue;
    }
    if (part.empty()) continue;
    if (!wire::valid_name(part))
      return fail_with(Code::kUsage, "bad sub-path '" + below + "': use plain names only");
    parts.push_back(std::move(part));
    part.clear();
  }
  return parts;
}

// Fills kind, size and metadata from the open `fd`.
Status examine(Volume& volume) {
  VF_ASSIGN(volume.meta, io::stat_fd(volume.fd.get()));
  switch (volume.meta.type) {
    case io::FileType::kDirectory:
      volume.kind = wire::RootKind::kDirectory;
      return {};
    case io::FileType::kFile:
      volume.kind = wire::RootKind::kFile;
      break;
    case io::FileType::kBlockDevice:
      volume.kind = wire::RootKind::kBlockDevice;
      break;
    default:
      return fail_with(Code::kUsage,
                       volume.path + " is neither a directory, a regular file nor a block device");
  }
  VF_ASSIGN(volume.size, io::data_size(volume.fd.get()));
  return {};
}

// A misspelt device must not become a file that fills the memory behind /dev.
Status check_creatable(int parent, const std::string& path) {
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", parent);
  char real[4096];
  const ssize_t length = ::readlink(link, real, sizeof(real));
  const std::string_view where(real, length > 0 ? static_cast<std::size_t>(length) : 0);
  const bool devices =
      (where == "/dev" || where.starts_with("/dev/")) && !where.starts_with("/dev/shm");
  if (!devices) return {};
  return fail_with(Code::kUsage, "no such device: " + path);
}

Result<Volume> open_volume(const std::string& path, const std::string& below, bool must_exist) {
  Volume volume;
  volume.path = below.empty() ? path : path + "/" + below;
  if (path.empty())
    return fail_with(Code::kUsage, "empty path: name a directory, file or block device");
  VF_ASSIGN(const std::vector<std::string> parts, components(below));
  base::UniqueFd at;
  std::string name;
  if (parts.empty()) {
    // The operator's own path: links in it are followed, the last one too.
    base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd) {
      volume.fd = std::move(fd);
      VF_TRY(examine(volume));
      if (volume.kind == wire::RootKind::kDirectory) return volume;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return fail_with(must_exist ? Code::kSourceRead : Code::kDestinationWrite,
                       "cannot open " + path, errno);
    }
    std::string resolved = path;
    if (volume.fd) {  // so that a link to the file is not what gets replaced
      char real[4096];
      if (::realpath(path.c_str(), real) != nullptr) resolved = real;
    }
    const Split split = split_path(resolved);
    at = base::UniqueFd(::open(split.parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    name = split.name;
    if (!at) {
      return fail_with(Code::kUsage,
                       must_exist ? "no such file or directory: " + path
                                  : "cannot open the directory above " + path,
                       must_exist ? 0 : errno);
    }
  } else {
    at = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!at) return fail_with(Code::kUsage, "cannot open " + path, errno);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      auto next = io::open_at(at.get(), parts[i], O_RDONLY | O_DIRECTORY);
      if (!next)
        return fail_with(Code::kUsage, "cannot open " + volume.path, next.error().os_errno);
      at = std::move(*next);
    }
    name = parts.back();
    auto fd = io::open_at(at.get(), name, O_RDONLY | O_NONBLOCK);
    if (fd) {
      volume.fd = std::move(*fd);
      VF_TRY(examine(volume));
      if (volume.kind == wire::RootKind::kDirectory) return volume;
    } else if (fd.error().os_errno != ENOENT) {
      return fail_with(must_exist ? Code::kSourceRead : Code::kDestinationWrite,
                       "cannot open " + volume.path, fd.error().os_errno);
    }
  }
  if (volume.kind == wire::RootKind::kMissing && must_exist) {
    return fail_with(Code::kUsage, "no such file or directory: " + volume.path);
  }
  if (name.empty() || name == "." || name == "..") {
    return fail_with(Code::kUsage, "no such directory: " + volume.path);
  }
  if (volume.kind == wire::RootKind::kMissing) VF_TRY(check_creatable(at.get(), volume.path));
  volume.parent = std::move(at);
  volume.name = std::move(name);
  return volume;
}

// The (device, inode) pairs of a directory and all above it.
std::set<std::pair<std::uint64_t, std::uint64_t>> ancestors(int dirfd) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> chain;
  base::UniqueFd at(::openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at) {
    struct stat st;
    if (::fstat(at.get(), &st) != 0 || !chain.emplace(st.st_dev, st.st_ino).second) break;
    at = base::UniqueFd(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return chain;
}

}  // namespace

std::string_view kind_name(wire::RootKind kind) {
  switch (kind) {
    case wire::RootKind::kMissing:
      return "nothing";
    case wire::RootKind::kDirectory:
      return "a directory";
    case wire::RootKind::kFile:
      return "a regular file";
    case wire::RootKind::kBlockDevice:
      return "a block device";
  }
  return "?";
}

Result<Volume> open_source(const std::string& path, const std::string& below) {
  return open_volume(path, below, true);
}

Result<Volume> open_destination(const std::string& path, const std::string& below) {
  return open_volume(path, below, false);
}

Status check_pairing(wire::RootKind source, wire::RootKind destination, bool verify) {
  using wire::RootKind;
  const bool tree = source == RootKind::kDirectory;
  const bool fits =
      destination == RootKind::kMissing ? !verify : tree == (destination == RootKind::kDirectory);
  if (source != RootKind::kMissing && fits) return {};
  std::string text = "cannot " + std::string(verify ? "compare " : "sync ") +
                     std::string(kind_name(source)) + (verify ? " with " : " to ") +
                     std::string(kind_name(destination)) + ": ";
  text += tree ? "a directory goes to a directory"
               : "a file or block device goes to a file or block device, named by its full path";
  return fail_with(Code::kUsage, text);
}

Status check_apart(const Volume& source, const Volume& destination) {
  const auto refuse = [&](const char* why) {
    return fail_with(Code::kUsage, source.path + " and " + destination.path + " " + why +
                                       "; name two separate volumes");
  };
  if (destination.kind != wire::RootKind::kMissing && source.meta.dev == destination.meta.dev &&
      source.meta.ino == destination.meta.ino) {
    return refuse("are the same volume");
  }
  if (source.meta.type == io::FileType::kBlockDevice &&
      destination.kind == wire::RootKind::kBlockDevice &&
      source.meta.rdev == destination.meta.rdev) {
    return refuse("are the same device");
  }
  if (source.kind != wire::RootKind::kDirectory) return {};
  const int below = destination.kind == wire::RootKind::kMissing ? destination.parent.get()
                                                                 : destination.fd.get();
  if (ancestors(below).contains({source.meta.dev, source.meta.ino}))
    return refuse("lie one inside the other");
  if (destination.kind == wire::RootKind::kDirectory &&
      ancestors(source.fd.get()).contains({destination.meta.dev, destination.meta.ino})) {
    return refuse("lie one inside the other");
  }
  return {};
}

Status create_destination(Volume& destination, wire::RootKind source) {
  if (destination.kind != wire::RootKind::kMissing || source != wire::RootKind::kDirectory)
    return {};
  if (::mkdirat(destination.parent.get(), destination.name.c_str(), 0700) != 0) {
    return fail_with(Code::kDestinationWrite, "cannot make the directory " + destination.path,
                     errno);
  }
  VF_ASSIGN(destination.fd,
            io::open_at(destination.parent.get(), destination.name, O_RDONLY | O_DIRECTORY));
  destination.parent.reset();
  return examine(destination);
}

Result<base::UniqueFd> lock_destination(const Volume& destination,
                                        std::chrono::milliseconds patience) {
  if (!destination.fd) return base::UniqueFd();
  // A description of its own: flock(2) belongs to it, so two sessions of one process exclude each
  // other too.
  const std::string self = "/proc/self/fd/" + std::to_string(destination.fd.get());
  base::UniqueFd lock(::open(self.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!lock) return fail_with(Code::kUsage, "cannot lock " + destination.path, errno);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail_with(Code::kUsage, "cannot lock " + destination.path, errno);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail_with(
          Code::kUsage,
          destination.path + " is being written by another volferry; wait for it to end");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return lock;
}

}  // namespace volferry::session
