// SPDX-License-Identifier: Apache-2.0
#include "engine/session/merger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "engine/io/file.h"
#include "engine/session/convert.h"
#include "engine/session/item_code.h"
#include "engine/session/place.h"
#include "engine/session/sizes.h"
#include "engine/session/temp_name.h"

namespace volferry::session {

// ---- directories

Status Merger::on_list(const wire::DirList& list) {
  if (list.image != (image_.has_value())) {
    return fail_with(Code::kProtocol, "a list of another kind of volume than was agreed");
  }
  if (list.image) return image_entry(list);
  if (list.first) {
    if (open_list_) return fail_with(Code::kProtocol, "a directory's list was cut short");
    VF_TRY(begin_directory(list));
  } else if (!open_list_ || stack_.empty() || stack_.back()->number != list.dir) {
    return fail_with(Code::kProtocol, "a list chunk of no open directory");
  }
  if (list.first_index != next_index_)
    return fail_with(Code::kProtocol, "list indices do not follow");
  for (const wire::Entry& item : list.entries) {
    if (parts_.tally.stopped()) return fail_with(Code::kCancelled, "stopped");
    if (next_index_ > 0 && item.name <= last_name_) {
      return fail_with(Code::kProtocol, "list is not in the order of names");
    }
    last_name_ = item.name;
    entry(item, next_index_++);
  }
  if (list.last) end_directory(list.complete);
  return {};
}

Status Merger::begin_directory(const wire::DirList& list) {
  if (list.meta.type != wire::EntryType::kDirectory && !list.image) {
    return fail_with(Code::kProtocol, "the list of something that is no directory");
  }
  DestDirPtr parent;
  if (list.dir == 0) {
    if (!stack_.empty()) return fail_with(Code::kProtocol, "the root is listed twice");
  } else {
    while (!stack_.empty() && stack_.back()->number != list.parent) {
      parts_.keeper.subtree_listed(stack_.back());
      stack_.pop_back();
    }
    if (stack_.empty())
      return fail_with(Code::kProtocol, "a directory whose parent was not listed");
    parent = stack_.back();
  }
  next_index_ = 0;
  last_name_.clear();
  names_ = {};
  next_name_ = 0;
  fd_.reset();
  extra_names_.clear();
  stale_temps_.clear();
  resumed_temps_.clear();
  open_list_ = true;
  open_directory(list, parent);
  return {};
}

void Merger::open_directory(const wire::DirList& list, const DestDirPtr& parent) {
  const std::string path = parent == nullptr ? std::string() : parent->path_of(list.name);
  DestDirPtr dir = parts_.keeper.begin(list.dir, parent, path, nullptr);
  dir->want = list.meta;
  stack_.push_back(dir);
  parts_.tally.dirs_total.fetch_add(1);
  const auto failed = [&](const Error& error) {
    dir->failed = true;
    parts_.tally.destination_error(path, error);
  };
  if (parent != nullptr && (parent->failed || parent->node == nullptr)) {
    dir->failed = parent->failed;
    if (!dir->failed && read_only()) report_change(path, list.meta, true, false, false, {});
    return;
  }
  bool made = false;
  std::optional<io::Metadata> old;
  if (parent == nullptr && parts_.root_missing) {
    return report_change(path, list.meta, true, false, false, {});
  }
  if (parent == nullptr) {
    dir->node = parts_.tree.root();
  } else {
    auto parent_fd = parts_.tree.open(parent->node);
    if (!parent_fd) return failed(parent_fd.error());
    const int at = (*parent_fd)->get();
    auto there = io::stat_at(at, list.name);
    if (there) old = *there;
    if (!there && there.error().os_errno != ENOENT) return failed(there.error());
    if (!old || old->type != io::FileType::kDirectory) {
      if (read_only()) {
        if (!old) {
          report_change(path, list.meta, true, false, false, {});
          if (verify_) report_difference(path, {"missing"});
        }
        return;
      }
      const std::string temp = temp_name(list.name);
      const std::string& name = old ? temp : list.name;
      if (::mkdirat(at, name.c_str(), 0700) != 0) return failed(fail_sys("mkdir").error());
      if (old) {
        if (auto placed =
                place(at, temp, list.name, path, parts_.remover, !parts_.options.filter.empty());
            !placed) {
          (void)::unlinkat(at, temp.c_str(), AT_REMOVEDIR);
          return failed(placed.error());
        }
      }
      made = true;
      dir->made = true;
    }
    dir->node = parts_.tree.child(parent->node, list.name);
    if (!made) parts_.keeper.widen(dir, at, list.name, *old);
  }
  auto fd = parts_.tree.open(dir->node);
  if (!fd) return failed(fd.error());
  auto meta = io::stat_fd((*fd)->get());
  if (!meta) return failed(meta.error());
  if (parent == nullptr) parts_.keeper.widen(dir, (*fd)->get(), "", *meta);
  auto present = parts_.installer.read((*fd)->get(), "", old.value_or(*meta));
  if (!present) return failed(present.error());
  dir->default_acl = std::ranges::any_of(
      present->xattrs, [](const io::Xattr& attr) { return attr.name == io::kAclDefault; });
  const MetaDiff diff = parts_.installer.compare(list.meta, *present);
  if (verify_ && diff.any()) report_difference(path, kinds_of(diff));
  if (made || diff.any()) report_change(path, list.meta, made, false, false, diff);
  auto names = io::read_names((*fd)->get());
  if (!names) return failed(names.error());
  names_ = std::move(*names);
  fd_ = std::move(*fd);
}

void Merger::end_directory(bool complete) {
  DestDirPtr dir = stack_.back();
  while (next_name_ < names_.size()) extra(std::string(names_.name(next_name_++)));
  if (fd_ != nullptr && !dir->failed) {
    for (const std::string& temp : stale_temps_) {
      if (read_only() || resumed_temps_.contains(temp)) continue;
      auto meta = io::stat_at(fd_->get(), temp);
      if (meta)
        (void)parts_.remover.remove(fd_->get(), temp, dir->path_of(temp), *meta,
                                    Remover::Report::kSilent);
    }
    for (std::string& name : extra_names_) {
      if (verify_) {
        auto meta = io::stat_at(fd_->get(), name);
        if (!meta || parts_.remover.is_protected(dir->path_of(name), *meta, dir->path.empty()))
          continue;
        const bool directory = meta->type == io::FileType::kDirectory;
        report_difference(dir->path_of(name) + (directory ? "/" : ""), {"extra"});
      } else if (complete && parts_.options.delete_extra) {
        parts_.extras.add(dir->node, dir->path, std::move(name));
      }
    }
  }
  extra_names_.clear();
  open_list_ = false;
  fd_.reset();
  names_ = {};
  parts_.keeper.file_done(dir);
}

void Merger::extra(const std::string& name) {
  if (is_temp_name(name)) {
    stale_temps_.push_back(name);
  } else if (verify_ || parts_.options.delete_extra) {
    extra_names_.push_back(name);
  }
}

std::optional<io::Metadata> Merger::take_old(const std::string& name) {
  while (next_name_ < names_.size() && names_.name(next_name_) < name) {
    extra(std::string(names_.name(next_name_++)));
  }
  if (next_name_ >= names_.size() || names_.name(next_name_) != name) return std::nullopt;
  ++next_name_;
  auto meta = io::stat_at(fd_->get(), name);
  if (!meta) return std::nullopt;
  return *meta;
}

// ---- entries

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
  if (!read_only()) parts_.links.add(group, dir, item.name, old);
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

Status Merger::image_entry(const wire::DirList& list) {
  if (list.entries.size() != 1 || !stack_.empty())
    return fail_with(Code::kProtocol, "a bad image list");
  const wire::EntryMeta& want = list.entries[0].meta;
  parts_.tally.files_total.fetch_add(1);
  parts_.tally.bytes_total.fetch_add(want.size);
  DestDirPtr dir = parts_.keeper.begin(0, nullptr, "", nullptr);
  stack_.push_back(dir);
  dir->node = parts_.tree.root();
  dir->failed = true;  // the directory that holds the image is not ours to change
  auto job = std::make_shared<FileJob>();
  job->dir = dir;
  job->name = image_->name;
  job->want = want;
  job->device = image_->device;
  job->content_only = image_->device || want.type != wire::EntryType::kFile;
  job->compare_only = read_only();
  VF_ASSIGN(const io::DirFd fd, parts_.tree.open(dir->node));
  auto old = io::stat_at(fd->get(), image_->name);
  if (old && image_->device) old->size = image_->size;
  if (old) {
    job->old = Present{*old, {}};
    if (!job->content_only) {
      VF_ASSIGN(*job->old, parts_.installer.read(fd->get(), image_->name, *old));
      job->diff = parts_.installer.compare(want, *job->old);
      job->new_inode = false;
    }
    const std::string temp = temp_name(image_->name);
    job->resume = !image_->device && io::stat_at(fd->get(), temp).has_value();
  }
  parts_.keeper.add_file(*dir);
  parts_.keeper.file_done(dir);
  {
    const std::lock_guard lock(mutex_);
    ++open_jobs_;
  }
  if (image_->device && image_->size < want.size) {
    job_done(job, Outcome::kFailed);
    return fail_with(Code::kDestinationTooSmall,
                     "the destination device holds " + std::to_string(image_->size) +
                         " bytes, the source " + std::to_string(want.size));
  }
  const bool same_size = old && (image_->device || old->size == want.size);
  const bool quick = !job->content_only && same_size && mtime_of(want) == old->mtime;
  const bool compare = verify_ || parts_.options.checksum;
  if (quick && !compare) {
    job_done(job, Outcome::kSame);
  } else if (read_only() && !same_size) {
    if (verify_ && !old) {
      report_difference(image_->name, {"missing"});
      job_done(job, Outcome::kFailed);
    } else {
      job_done(job, Outcome::kDiffers);
    }
  } else {
    start(std::move(job));
  }
  return {};
}

void Merger::start(FileJobPtr job) {
  {
    std::unique_lock lock(mutex_);
    while (open_jobs_ > kMaxOpenFiles && !parts_.tally.stopped()) {
      jobs_changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
  }
  if (parts_.tally.stopped() || (parts_.tally.is_full() && !job->compare_only)) {
    return job_done(job, Outcome::kFailed);
  }
  content_->fetch(std::move(job));
}

Status Merger::update_metadata(const FileJob& job) {
  if (!job.diff.any()) return {};
  VF_ASSIGN(const io::DirFd fd, parts_.tree.open(job.dir->node));
  return parts_.installer.apply(-1, fd->get(), job.name, job.want, *job.old);
}

void Merger::job_done(const FileJobPtr& job, Outcome outcome) {
  const std::string path = job->path();
  const bool existed = job->old.has_value();
  const std::uint64_t group = job->want.hardlink_group;
  bool good = true;
  switch (outcome) {
    case Outcome::kInstalled:
      parts_.tally.files_transferred.fetch_add(1);
      report_change(path, job->want, !existed, true,
                    existed && job->old->meta.size != job->want.size, job->diff);
      break;
    case Outcome::kSame:
      if (verify_ && job->diff.any()) report_difference(path, kinds_of(job->diff));
      if (job->diff.any()) report_change(path, job->want, false, false, false, job->diff);
      if (!job->compare_only && existed) {
        if (!job->content_only) parts_.installer.count_owner(job->want, job->old->meta);
        if (auto updated = update_metadata(*job); !updated) {
          parts_.tally.destination_error(path, updated.error());
          good = false;
        }
      }
      parts_.tally.matched_bytes.fetch_add(job->compare_only ? 0 : job->want.size);
      break;
    case Outcome::kDiffers:
      if (verify_) {
        std::vector<std::string> kinds{
            existed && job->old->meta.size != job->want.size ? "size" : "content"};
        for (std::string& kind : kinds_of(job->diff)) kinds.push_back(std::move(kind));
        report_difference(path, std::move(kinds));
      } else {
        parts_.tally.files_transferred.fetch_add(1);
        report_change(path, job->want, !existed, true,
                      existed && job->old->meta.size != job->want.size, job->diff);
      }
      break;
    case Outcome::kFailed:
      good = false;
      break;
  }
  parts_.tally.files_done.fetch_add(1);
  const std::uint64_t counted = job->counted.load();
  if (counted < job->want.size) parts_.tally.bytes_done.fetch_add(job->want.size - counted);
  if (group != 0 && !read_only())
    good ? parts_.links.leader_ready(group) : parts_.links.leader_failed(group);
  parts_.keeper.file_done(job->dir);
  {
    const std::lock_guard lock(mutex_);
    --open_jobs_;
  }
  jobs_changed_.notify_all();
}

Status Merger::finish() {
  if (open_list_) return fail_with(Code::kProtocol, "the list ended inside a directory");
  while (!stack_.empty()) {
    parts_.keeper.subtree_listed(stack_.back());
    stack_.pop_back();
  }
  std::unique_lock lock(mutex_);
  while (open_jobs_ > 0 && !parts_.tally.stopped())
    jobs_changed_.wait_for(lock, std::chrono::milliseconds(100));
  if (open_jobs_ > 0) return fail_with(Code::kCancelled, "stopped");
  return {};
}

// ---- reports

void Merger::report_change(const std::string& path, const wire::EntryMeta& want, bool is_new,
                           bool content, bool size, const MetaDiff& diff, char kind,
                           const std::string& target) {
  if (verify_ || !parts_.options.itemize) return;
  ItemChangeEvent event;
  event.code = item_code(want.type, is_new, content, size, diff, kind);
  event.path = path.empty() ? "." : path;
  if (want.type == wire::EntryType::kDirectory) event.path += "/";
  event.link_target = target;
  parts_.tally.change(event);
}

std::vector<std::string> Merger::kinds_of(const MetaDiff& diff) const {
  std::vector<std::string> kinds;
  if (diff.mode) kinds.emplace_back("mode");
  if (diff.owner) kinds.emplace_back("owner");
  if (diff.group) kinds.emplace_back("group");
  if (diff.mtime) kinds.emplace_back("mtime");
  if (diff.acl) kinds.emplace_back("acl");
  if (diff.xattr) kinds.emplace_back("xattr");
  return kinds;
}

void Merger::report_difference(const std::string& path, std::vector<std::string> kinds) {
  parts_.tally.difference({path.empty() ? "." : path, std::move(kinds)});
}

}  // namespace volferry::session
