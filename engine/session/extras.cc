// SPDX-License-Identifier: Apache-2.0
#include "engine/session/extras.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace volferry::session {

bool Remover::is_protected(const std::string& path, const io::Metadata& meta, bool at_root) const {
  if (at_root && path == "lost+found") return true;
  const bool device =
      meta.type == io::FileType::kCharDevice || meta.type == io::FileType::kBlockDevice;
  if (device && !options_.devices) return true;
  return !options_.filter.empty() &&
         options_.filter.excluded(path, meta.type == io::FileType::kDirectory);
}

void Remover::count(const std::string& path, bool directory, Report report) {
  if (report == Report::kSilent) return;
  tally_.files_deleted.fetch_add(1);
  if (report == Report::kItemize) tally_.change({"*deleting", directory ? path + "/" : path, {}});
}

Status Remover::remove_children(int dirfd, const std::string& path, Report report, bool& kept) {
  VF_ASSIGN(const io::NameList names, io::read_names(dirfd));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (tally_.stopped()) return fail_with(Code::kCancelled, "stopped");
    const std::string name(names.name(i));
    const std::string below = path + "/" + name;
    auto meta = io::stat_at(dirfd, name);
    if (!meta) {
      if (meta.error().os_errno == ENOENT) continue;
      return std::unexpected(std::move(meta).error());
    }
    if (is_protected(below, *meta, false)) {
      kept = true;
      continue;
    }
    Status removed = remove(dirfd, name, below, *meta, report);
    if (!removed && removed.error().os_errno == ENOTEMPTY) {
      kept = true;
      continue;
    }
    VF_TRY(removed);
  }
  return {};
}

Status Remover::remove(int dirfd, const std::string& name, const std::string& path,
                       const io::Metadata& meta, Report report) {
  const bool directory = meta.type == io::FileType::kDirectory;
  if (directory) {
    if (!can_override_ && (meta.mode & 0700) != 0700 && !options_.read_only()) {
      (void)io::set_mode_at(dirfd, name, static_cast<std::uint16_t>(meta.mode | 0700));
    }
    VF_ASSIGN(const base::UniqueFd fd, io::open_at(dirfd, name, O_RDONLY | O_DIRECTORY));
    bool kept = false;
    VF_TRY(remove_children(fd.get(), path, report, kept));
    if (kept) return fail_sys("rmdir " + name + " (it holds excluded items)", ENOTEMPTY);
  }
  count(path, directory, report);
  if (options_.read_only()) return {};
  if (::unlinkat(dirfd, name.c_str(), directory ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT) {
    return fail_sys((directory ? "rmdir " : "unlink ") + name);
  }
  return {};
}

void Extras::add(const io::DirPtr& node, const std::string& path, std::string name) {
  if (bytes_ > kMaxBytes) {
    overflow_ = true;
    return;
  }
  if (dirs_.empty() || dirs_.back().node != node) {
    dirs_.push_back({node, path, {}});
    bytes_ += sizeof(Dir) + path.size();
  }
  bytes_ += sizeof(std::string) + name.size();
  dirs_.back().names.push_back(std::move(name));
}

std::uint64_t Extras::remove_all(io::DirTree& tree, Remover& remover, Tally& tally, bool read_only,
                                 bool itemize) {
  const std::uint64_t before = tally.files_deleted.load();
  for (const Dir& dir : dirs_) {
    auto fd = tree.open(dir.node);
    if (!fd) {
      tally.item_error(dir.path, fd.error());
      continue;
    }
    auto meta = io::stat_fd((*fd)->get());
    const bool narrow = meta && (meta->mode & 0300) != 0300 && ::geteuid() != 0;
    if (narrow && !read_only) {
      (void)io::set_mode_at((*fd)->get(), "", static_cast<std::uint16_t>(meta->mode | 0700));
    }
    for (const std::string& name : dir.names) {
      if (tally.stopped()) break;
      const std::string path = dir.path.empty() ? name : dir.path + "/" + name;
      auto victim = io::stat_at((*fd)->get(), name);
      if (!victim) continue;  // gone already
      if (remover.is_protected(path, *victim, dir.path.empty())) continue;
      Status removed =
          remover.remove((*fd)->get(), name, path, *victim,
                         itemize ? Remover::Report::kItemize : Remover::Report::kCount);
      // A directory that keeps excluded items stays: that is what the user asked for.
      if (!removed && removed.error().os_errno != ENOTEMPTY &&
          removed.error().code != Code::kCancelled) {
        tally.item_error(path, removed.error());
      }
    }
    if (meta && !read_only) {
      if (narrow) (void)io::set_mode_at((*fd)->get(), "", meta->mode);
      (void)io::set_mtime_at((*fd)->get(), "", meta->mtime);
    }
  }
  dirs_.clear();
  bytes_ = 0;
  return tally.files_deleted.load() - before;
}

}  // namespace volferry::session
