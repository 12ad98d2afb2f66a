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
  present->fixed = parent == nullptr && parts_.installer.keeps_root(present->meta);
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
  content_->dir_listed();
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
