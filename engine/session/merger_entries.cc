// SPDX-License-Identifier: Apache-2.0
// What is done for each kind of entry.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "engine/io/file.h"
#include "engine/session/convert.h"
#include "engine/session/item_code.h"
#include "engine/session/merger.h"
#include "engine/session/place.h"
#include "engine/session/sizes.h"
#include "engine/session/temp_name.h"

namespace volferry::session {

void Merger::entry(const wire::Entry& item, std::uint32_t index) {
  const DestDirPtr& dir = stack_.back();
  if (dir->failed) return;
  const std::optional<io::Metadata> old = fd_ == nullptr ? std::nullopt : take_old(item.name);
  if (item.meta.type == wire::EntryType::kDirectory) return directory_entry(item, old);
  parts_.tally.files_total.fetch_add(1);
  parts_.tally.bytes_total.fetch_add(item.meta.size);
  const std::string path = dir->path_of(item.name);
  if (verify_) {
    if (!old) return report_difference(path, {"missing"});
    if (to_wire(old->type) != item.meta.type) return report_difference(path, {"type"});
  }
  if (item.meta.hardlink_group != 0 && linked_entry(item, old)) return;
  if (item.meta.type == wire::EntryType::kFile) return file_entry(item, index, old);
  special_entry(item, old);
}

void Merger::directory_entry(const wire::Entry& item, const std::optional<io::Metadata>& old) {
  const DestDirPtr& dir = stack_.back();
  const std::string path = dir->path_of(item.name);
  if (verify_ && old && old->type != io::FileType::kDirectory) report_difference(path, {"type"});
  // Everything else waits for the directory's own list, which one that is not entered does not
  // have.
  if (!item.no_descend) return;
  wire::DirList list;
  list.dir = 0xffffffff;
  list.name = item.name;
  list.meta = item.meta;
  const std::size_t depth = stack_.size();
  const io::DirFd fd = fd_;
  io::NameList names = std::move(names_);
  names_ = {};
  open_directory(list, DestDirPtr(dir));
  DestDirPtr made = stack_.back();
  stack_.resize(depth);
  parts_.keeper.file_done(made);
  parts_.keeper.subtree_listed(made);
  fd_ = fd;
  names_ = std::move(names);
}

bool Merger::linked_entry(const wire::Entry& item, const std::optional<io::Metadata>& old) {
  const DestDirPtr& dir = stack_.back();
  const std::uint64_t group = item.meta.hardlink_group;
  if (parts_.links.claim_leader(group, dir, item.name)) {
    if (old) parts_.links.set_leader_inode(group, *old);
    return false;
  }
  const std::string path = dir->path_of(item.name);
  const bool same = old && parts_.links.same_inode(group, *old);
  parts_.tally.files_done.fetch_add(1);
  parts_.tally.bytes_done.fetch_add(item.meta.size);
  if (verify_) {
    if (!same) report_difference(path, {"hardlink"});
    return true;
  }
  if (!same)
    report_change(path, item.meta, true, true, false, {}, 'h', parts_.links.leader_path(group));
  if (!read_only()) parts_.links.add(group, dir, item.name);
  return true;
}

Status Merger::make_special(const wire::Entry& item) {
  const DestDirPtr& dir = stack_.back();
  const std::string temp = temp_name(item.name);
  const int at = fd_->get();
  const auto make = [&]() -> int {
    if (item.meta.type == wire::EntryType::kSymlink) {
      return ::symlinkat(item.meta.link_target.c_str(), at, temp.c_str());
    }
    mode_t type = S_IFIFO;
    if (item.meta.type == wire::EntryType::kSocket) type = S_IFSOCK;
    if (item.meta.type == wire::EntryType::kCharDevice) type = S_IFCHR;
    if (item.meta.type == wire::EntryType::kBlockDevice) type = S_IFBLK;
    return ::mknodat(at, temp.c_str(), type | 0600, rdev_from_wire(item.meta.rdev));
  };
  int made = make();
  if (made != 0 && errno == EEXIST) {
    if (auto meta = io::stat_at(at, temp))
      VF_TRY(parts_.remover.remove(at, temp, temp, *meta, Remover::Report::kSilent));
    made = make();
  }
  if (made != 0) {
    return fail_sys((item.meta.type == wire::EntryType::kSymlink ? "symlink " : "mknod ") +
                    item.name);
  }
  const auto dress = [&]() -> Status {
    VF_ASSIGN(const io::Metadata meta, io::stat_at(at, temp));
    VF_ASSIGN(const Present present, parts_.installer.read(at, temp, meta));
    VF_TRY(parts_.installer.apply(-1, at, temp, item.meta, present));
    parts_.installer.count_owner(item.meta, present.meta);
    if (!parts_.options.perms && item.meta.type != wire::EntryType::kSymlink) {
      VF_TRY(io::set_mode_at(at, temp, parts_.installer.new_mode(item.meta)));
    }
    return place(at, temp, item.name, dir->path_of(item.name), parts_.remover,
                 !parts_.options.filter.empty());
  };
  Status dressed = dress();
  if (!dressed) (void)::unlinkat(at, temp.c_str(), 0);
  return dressed;
}

void Merger::special_entry(const wire::Entry& item, const std::optional<io::Metadata>& old) {
  const DestDirPtr& dir = stack_.back();
  const std::string path = dir->path_of(item.name);
  const std::uint64_t group = item.meta.hardlink_group;
  bool same = old && to_wire(old->type) == item.meta.type;
  if (same && item.meta.type == wire::EntryType::kSymlink) {
    auto target = io::read_link_at(fd_->get(), item.name);
    same = target && *target == item.meta.link_target;
    if (verify_ && !same) return report_difference(path, {"target"});
  }
  if (same && (item.meta.type == wire::EntryType::kCharDevice ||
               item.meta.type == wire::EntryType::kBlockDevice)) {
    same = rdev_to_wire(old->rdev) == item.meta.rdev;
    if (verify_ && !same) return report_difference(path, {"rdev"});
  }
  // Another group's inode must keep its own metadata.
  if (same && !read_only() && old->nlink > 1 &&
      (group == 0 || !parts_.links.claim_inode(group, *old))) {
    same = false;
  }
  Status done;
  if (same) {
    auto present = parts_.installer.read(fd_->get(), item.name, *old);
    if (!present) return parts_.tally.item_error(path, present.error());
    const MetaDiff diff = parts_.installer.compare(item.meta, *present);
    if (diff.any()) {
      if (verify_) report_difference(path, kinds_of(diff));
      report_change(path, item.meta, false, false, false, diff);
      if (!read_only())
        done = parts_.installer.apply(-1, fd_->get(), item.name, item.meta, *present);
    }
  } else {
    report_change(path, item.meta, !old, true, false, {}, '\0', item.meta.link_target);
    if (!read_only()) done = make_special(item);
    if (done) parts_.tally.files_transferred.fetch_add(1);
  }
  if (!done) parts_.tally.destination_error(path, done.error());
  parts_.tally.files_done.fetch_add(1);
  if (group != 0 && !read_only())
    done ? parts_.links.leader_ready(group) : parts_.links.leader_failed(group);
}

void Merger::file_entry(const wire::Entry& item, std::uint32_t index,
                        const std::optional<io::Metadata>& old) {
  const DestDirPtr& dir = stack_.back();
  auto job = std::make_shared<FileJob>();
  job->dir_number = dir->number;
  job->index = index;
  job->dir = dir;
  job->name = item.name;
  job->want = item.meta;
  job->compare_only = read_only();
  const std::uint64_t group = item.meta.hardlink_group;
  const bool regular = old && old->type == io::FileType::kFile;
  if (regular) {
    auto present = parts_.installer.read(fd_->get(), item.name, *old);
    if (!present) {
      parts_.tally.item_error(job->path(), present.error());
      if (group != 0) parts_.links.leader_failed(group);
      return;
    }
    job->old = std::move(*present);
    job->diff = parts_.installer.compare(item.meta, *job->old);
    if (old->nlink > 1) {
      const bool ours = group != 0 && (read_only() || parts_.links.claim_inode(group, *old));
      job->new_inode = !ours && !read_only();
      if (verify_ && group == 0 && parts_.options.hardlinks)
        report_difference(job->path(), {"hardlink"});
    }
  }
  const bool quick = regular && old->size == item.meta.size && mtime_of(item.meta) == old->mtime;
  const bool compare = verify_ || parts_.options.checksum;
  parts_.keeper.add_file(*dir);
  {
    const std::lock_guard lock(mutex_);
    ++open_jobs_;
  }
  if (quick && !compare && !job->new_inode) return job_done(job, Outcome::kSame);
  if (read_only() && (!regular || old->size != item.meta.size))
    return job_done(job, Outcome::kDiffers);
  if (read_only() && !compare) return job_done(job, Outcome::kDiffers);
  const std::string temp = temp_name(item.name);
  if (names_.find(temp) != names_.size()) {
    job->resume = true;
    resumed_temps_.insert(temp);
  }
  start(std::move(job));
}

}  // namespace volferry::session
