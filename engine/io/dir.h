// SPDX-License-Identifier: Apache-2.0
// Directories by descriptor. Every open goes one component at a time below a descriptor that is
// already held, so no path is ever resolved twice, no symbolic link is followed, and trees may be
// deeper than PATH_MAX.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/unique_fd.h"

namespace volferry::io {

// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS, O_CLOEXEC and
// O_NOFOLLOW added. `name` is one component; where the kernel (or a seccomp profile) has no
// openat2, openat with O_NOFOLLOW is as strict.
Result<base::UniqueFd> open_at(int dirfd, const std::string& name, int flags, unsigned mode = 0);

// The names in one directory, without "." and "..", in ascending byte order. One arena, about name
// length + 9 bytes each.
class NameList {
 public:
  std::size_t size() const { return items_.size(); }
  std::string_view name(std::size_t index) const {
    return {arena_.data() + items_[index].offset, items_[index].length};
  }
  // DT_* of readdir(3); DT_UNKNOWN where the file system does not tell.
  std::uint8_t type(std::size_t index) const { return items_[index].type; }
  // Index of the name, or size() where it is absent.
  std::size_t find(std::string_view name) const;

 private:
  friend Result<NameList> read_names(int dirfd);
  struct Item {
    std::uint64_t offset : 40;
    std::uint64_t length : 16;
    std::uint64_t type : 8;
  };
  std::string arena_;
  std::vector<Item> items_;
};
Result<NameList> read_names(int dirfd);

using DirFd = std::shared_ptr<const base::UniqueFd>;

// One directory of a tree: a name below its parent. Holds its ancestors alive.
class DirNode {
 public:
  const std::shared_ptr<DirNode>& parent() const { return parent_; }
  const std::string& name() const { return name_; }
  // Path below the root, "" for the root itself; may be longer than PATH_MAX.
  std::string path() const;
  // The path of an entry in this directory.
  std::string path_of(std::string_view entry) const;

 private:
  friend class DirTree;
  std::shared_ptr<DirNode> parent_;
  std::string name_;
  // Guarded by DirTree::mutex_.
  DirFd fd_;
  std::list<DirNode*>::iterator lru_;
  std::uint64_t dev_ = 0;
  std::uint64_t ino_ = 0;  // 0: never opened
  class DirTree* tree_ = nullptr;

 public:
  ~DirNode();
};
using DirPtr = std::shared_ptr<DirNode>;

// Opens directories of one tree on demand and keeps the most recently used ones open, at most
// `max_open`. Thread-safe. Outlives its nodes.
class DirTree {
 public:
  DirTree(base::UniqueFd root, unsigned max_open);

  const DirPtr& root() const { return root_; }
  int root_fd() const { return root_fd_->get(); }
  DirPtr child(const DirPtr& parent, std::string name);
  // The open directory, reopened through its ancestors where needed. ESTALE where another directory
  // has taken the name since the first open.
  Result<DirFd> open(const DirPtr& node);

 private:
  friend class DirNode;
  Result<DirFd> open_locked(DirNode* node);

  std::mutex mutex_;
  const unsigned max_open_;
  DirFd root_fd_;
  std::list<DirNode*> lru_;  // front: most recently used
  DirPtr root_;
};

}  // namespace volferry::io
