// SPDX-License-Identifier: Apache-2.0
#include "engine/io/dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "engine/io/metadata.h"

namespace volferry::io {

Result<base::UniqueFd> open_at(int dirfd, const std::string& name, int flags, unsigned mode) {
  // Remembered for the process: a kernel or profile that refuses openat2 once always does.
  static std::atomic<bool> refused{false};
  if (!refused.load(std::memory_order_relaxed)) {
    struct open_how how = {};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
    how.mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    for (;;) {
      const long fd = ::syscall(SYS_openat2, dirfd, name.c_str(), &how, sizeof(how));
      if (fd >= 0) return base::UniqueFd(static_cast<int>(fd));
      if (errno == EINTR || errno == EAGAIN) continue;
      if (errno != ENOSYS && errno != EPERM) return fail_sys("open " + name);
      break;
    }
  }
  const int fd = ::openat(dirfd, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return fail_sys("open " + name);
  refused.store(true, std::memory_order_relaxed);
  return base::UniqueFd(fd);
}

std::size_t NameList::find(std::string_view name) const {
  std::size_t low = 0;
  std::size_t high = items_.size();
  while (low < high) {
    const std::size_t mid = (low + high) / 2;
    if (this->name(mid) < name) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return low < items_.size() && this->name(low) == name ? low : items_.size();
}

namespace {
struct LinuxDirent64 {
  std::uint64_t ino;
  std::int64_t off;
  std::uint16_t reclen;
  std::uint8_t type;
  char name[1];
};
}  // namespace

Result<NameList> read_names(int dirfd) {
  NameList list;
  // A descriptor from a cache may have been read before.
  if (::lseek(dirfd, 0, SEEK_SET) < 0) return fail_sys("rewinddir");
  alignas(8) char buffer[32768];
  for (;;) {
    const long got = ::syscall(SYS_getdents64, dirfd, buffer, sizeof(buffer));
    if (got < 0) return fail_sys("readdir");
    if (got == 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const LinuxDirent64*>(buffer + at);
      const char* name = buffer + at + offsetof(LinuxDirent64, name);
      at += entry->reclen;
      const std::size_t length = std::strlen(name);
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
      list.items_.push_back({list.arena_.size(), length, entry->type});
      list.arena_.append(name, length);
    }
  }
  std::sort(list.items_.begin(), list.items_.end(),
            [&](const NameList::Item& a, const NameList::Item& b) {
              return std::string_view(list.arena_.data() + a.offset, a.length) <
                     std::string_view(list.arena_.data() + b.offset, b.length);
            });
  return list;
}

std::string DirNode::path() const {
  std::vector<const DirNode*> chain;
  for (const DirNode* node = this; node->parent_ != nullptr; node = node->parent_.get()) {
    chain.push_back(node);
  }
  std::string path;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    if (!path.empty()) path += '/';
    path += (*it)->name_;
  }
  return path;
}

std::string DirNode::path_of(std::string_view entry) const {
  std::string path = this->path();
  if (!path.empty()) path += '/';
  path += entry;
  return path;
}

DirNode::~DirNode() {
  {
    const std::lock_guard lock(tree_->mutex_);
    if (fd_ != nullptr && parent_ != nullptr) tree_->lru_.erase(lru_);
    fd_.reset();
  }
  // A chain of nodes deeper than the stack allows must not be destroyed by recursion.
  DirPtr up = std::move(parent_);
  while (up != nullptr && up.use_count() == 1) {
    DirPtr next = std::move(up->parent_);
    if (up->fd_ != nullptr && next != nullptr) {
      const std::lock_guard lock(tree_->mutex_);
      if (up->fd_ != nullptr) tree_->lru_.erase(up->lru_);
      up->fd_.reset();
    }
    up = std::move(next);
  }
}

DirTree::DirTree(base::UniqueFd root, unsigned max_open)
    : max_open_(max_open), root_fd_(std::make_shared<const base::UniqueFd>(std::move(root))) {
  root_ = std::make_shared<DirNode>();
  root_->tree_ = this;
  root_->fd_ = root_fd_;
}

DirPtr DirTree::child(const DirPtr& parent, std::string name) {
  auto node = std::make_shared<DirNode>();
  node->parent_ = parent;
  node->name_ = std::move(name);
  node->tree_ = this;
  return node;
}

Result<DirFd> DirTree::open(const DirPtr& node) {
  const std::lock_guard lock(mutex_);
  return open_locked(node.get());
}

Result<DirFd> DirTree::open_locked(DirNode* node) {
  if (node->parent_ == nullptr) return root_fd_;
  if (node->fd_ != nullptr) {
    lru_.splice(lru_.begin(), lru_, node->lru_);
    return node->fd_;
  }
  // Down from the nearest ancestor that is open; a loop, since trees may be deeper than the stack.
  std::vector<DirNode*> closed;
  DirNode* above = node;
  while (above->parent_ != nullptr && above->fd_ == nullptr) {
    closed.push_back(above);
    above = above->parent_.get();
  }
  DirFd fd = above->fd_;
  for (auto it = closed.rbegin(); it != closed.rend(); ++it) {
    DirNode* next = *it;
    auto opened = open_at(fd->get(), next->name_, O_RDONLY | O_DIRECTORY);
    if (!opened) return std::unexpected(std::move(opened).error());
    VF_ASSIGN(const Metadata meta, stat_fd(opened->get()));
    if (next->ino_ == 0) {
      next->dev_ = meta.dev;
      next->ino_ = meta.ino;
    } else if (next->dev_ != meta.dev || next->ino_ != meta.ino) {
      return fail_sys("open " + next->name_, ESTALE);
    }
    fd = std::make_shared<const base::UniqueFd>(std::move(*opened));
    // Only the directory asked for is worth keeping; ancestors were not in use.
    if (next == node) {
      next->fd_ = fd;
      lru_.push_front(next);
      next->lru_ = lru_.begin();
    }
  }
  while (lru_.size() > max_open_) {
    lru_.back()->fd_.reset();
    lru_.pop_back();
  }
  return fd;
}

}  // namespace volferry::io
