// SPDX-License-Identifier: Apache-2.0
#include "engine/session/dest_dir.h"

#include <utility>

namespace volferry::session {

DirKeeper::DirKeeper(io::DirTree& tree, const VolumeOptions& options, Installer& installer,
                     Tally& tally, std::function<void(std::uint32_t)> released)
    : tree_(tree),
      options_(options),
      installer_(installer),
      tally_(tally),
      released_(std::move(released)) {}

DestDirPtr DirKeeper::begin(std::uint32_t number, DestDirPtr parent, std::string path,
                            io::DirPtr node) {
  auto dir = std::make_shared<DestDir>();
  dir->number = number;
  dir->path = std::move(path);
  dir->node = std::move(node);
  if (parent != nullptr) parent->refs.fetch_add(1);
  dir->parent = std::move(parent);
  return dir;
}

void DirKeeper::file_done(const DestDirPtr& dir) {
  if (dir->files.fetch_sub(1) != 1) return;
  released_(dir->number);
  unref(dir);
}

void DirKeeper::unref(DestDirPtr dir) {
  while (dir != nullptr && dir->refs.fetch_sub(1) == 1) {
    finish(dir);
    dir = std::exchange(dir->parent, nullptr);
  }
}

void DirKeeper::finish(const DestDirPtr& dir) {
  if (read_only_ || dir->failed || dir->node == nullptr) return;
  // A mode that forbids entering must go on last, and nothing must be opened below it afterwards:
  // the open descriptor serves.
  auto fd = tree_.open(dir->node);
  if (!fd) return tally_.item_error(dir->path, fd.error());
  auto meta = io::stat_fd((*fd)->get());
  if (!meta) return tally_.item_error(dir->path, meta.error());
  auto present = installer_.read((*fd)->get(), "", *meta);
  if (!present) return tally_.item_error(dir->path, present.error());
  present->fixed = dir->parent == nullptr && installer_.keeps_root(*meta);
  wire::EntryMeta want = dir->want;
  if (!options_.perms) {
    const std::lock_guard lock(mutex_);
    if (dir->restore) (void)io::set_mode_at((*fd)->get(), "", want.mode);
    if (dir->made) (void)io::set_mode_at((*fd)->get(), "", installer_.new_mode(want));
  }
  if (auto applied = installer_.apply((*fd)->get(), -1, "", want, *present); !applied) {
    tally_.item_error(dir->path, applied.error());
  }
  installer_.count_owner(want, *meta);
  const std::lock_guard lock(mutex_);
  widened_.erase(dir);
}

void DirKeeper::widen(const DestDirPtr& dir, int dirfd, const std::string& name,
                      const io::Metadata& meta) {
  if (installer_.can_override() || (meta.mode & 0700) == 0700 || read_only_) return;
  const std::uint16_t wide = static_cast<std::uint16_t>(meta.mode | 0700);
  if (!io::set_mode_at(dirfd, name, wide)) return;  // not ours: opening it will tell
  const std::lock_guard lock(mutex_);
  dir->restore = true;
  if (!options_.perms) dir->want.mode = meta.mode;
  widened_.insert(dir);
}

void DirKeeper::restore_all() {
  std::unordered_set<DestDirPtr> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(widened_);
  }
  for (const DestDirPtr& dir : left) {
    if (auto fd = tree_.open(dir->node)) (void)io::set_mode_at((*fd)->get(), "", dir->want.mode);
  }
}

}  // namespace volferry::session
