// SPDX-License-Identifier: Apache-2.0
#include "engine/session/source_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "engine/io/file.h"
#include "engine/session/convert.h"
#include "engine/session/temp_name.h"

namespace volferry::session {

namespace {
// A chunk of the list is sent when it holds this many entries or about this many bytes: small
// enough that the first request comes back early, large enough that a frame costs nothing.
constexpr std::size_t kChunkEntries = 512;
constexpr std::size_t kChunkBytes = 128u << 10;

std::size_t rough_bytes(const wire::Entry& entry) {
  std::size_t bytes = entry.name.size() + entry.meta.link_target.size() + 48;
  for (const wire::Xattr& attr : entry.meta.xattrs) bytes += attr.name.size() + attr.value.size();
  return bytes;
}
}  // namespace

struct SourceTree::SourceDir {
  std::uint32_t number = 0;
  io::DirPtr node;
  io::NameList names;
  // Entry index on the wire -> index in names. Appended by the walk, read by openers.
  mutable std::mutex mutex;
  std::vector<std::uint32_t> listed;
  std::string name_of(std::uint32_t index) const {
    const std::lock_guard lock(mutex);
    return index < listed.size() ? std::string(names.name(listed[index])) : std::string();
  }
};

// A directory whose subdirectories are still to be walked.
struct SourceTree::Pending {
  SourceDirPtr dir;
  std::vector<std::uint32_t> subdirs;  // indices in names
  std::size_t next = 0;
};

SourceTree::SourceTree(base::UniqueFd root, std::string label, const VolumeOptions& options,
                       Tally& tally)
    : options_(options), tally_(tally), label_(std::move(label)) {
  const auto meta = io::stat_fd(root.get());
  if (meta && meta->type == io::FileType::kDirectory) {
    root_dev_ = meta->dev;
    tree_ = std::make_unique<io::DirTree>(std::move(root), 128);
  } else {
    image_ = std::move(root);
  }
}

SourceTree::~SourceTree() = default;

void SourceTree::report(const io::DirNode& dir, std::string_view name, const Error& error,
                        bool& complete) {
  complete = false;
  tally_.source_errors.fetch_add(1);
  tally_.item_error(name.empty() ? dir.path() : dir.path_of(name), error);
}

std::uint64_t SourceTree::group_of(const io::Metadata& meta) {
  if (!options_.hardlinks || meta.nlink < 2 || meta.type == io::FileType::kDirectory) return 0;
  const InodeKey key{meta.dev, meta.ino};
  auto [it, fresh] = groups_.try_emplace(key, Group{next_group_, meta.nlink});
  if (fresh) ++next_group_;
  const std::uint64_t number = it->second.number;
  if (--it->second.left == 0) groups_.erase(it);
  return number;
}

bool SourceTree::describe_entry(const SourceDirPtr& dir, int dirfd, std::size_t name_index,
                                wire::Entry& entry, bool& complete) {
  const std::string name(dir->names.name(name_index));
  if (is_temp_name(name)) return false;
  if (dir->node->parent() == nullptr && name == "lost+found") return false;
  auto meta = io::stat_at(dirfd, name);
  if (!meta) {
    if (meta.error().os_errno == ENOENT) {
      tally_.item_changed(dir->node->path_of(name), "vanished before it could be read");
    } else {
      report(*dir->node, name, meta.error(), complete);
    }
    return false;
  }
  const bool directory = meta->type == io::FileType::kDirectory;
  if (!options_.filter.empty() && options_.filter.excluded(dir->node->path_of(name), directory))
    return false;
  const bool device =
      meta->type == io::FileType::kCharDevice || meta->type == io::FileType::kBlockDevice;
  if (device && !options_.devices) return false;

  entry.name = name;
  entry.meta = to_wire(*meta);
  entry.meta.hardlink_group = group_of(*meta);
  entry.no_descend = directory && options_.one_file_system && meta->dev != root_dev_;
  if (meta->type == io::FileType::kSymlink) {
    auto target = io::read_link_at(dirfd, name);
    if (!target) {
      report(*dir->node, name, target.error(), complete);
      return false;
    }
    entry.meta.link_target = std::move(*target);
  }
  // A directory's attributes travel with its own list.
  if (!directory || entry.no_descend) {
    auto attrs = io::read_xattrs(io::XattrTarget::of_name(dirfd, name), options_.xattrs,
                                 wire::kMaxXattrBytes);
    if (!attrs) {
      if (attrs.error().os_errno == ENOENT) {
        tally_.item_changed(dir->node->path_of(name), "vanished before it could be read");
      } else {
        report(*dir->node, name, attrs.error(), complete);
      }
      return false;
    }
    entry.meta.xattrs = to_wire(std::move(*attrs));
  }
  return true;
}

Status SourceTree::list_directory(ListSink& sink, std::uint32_t parent, const SourceDirPtr& dir,
                                  Pending& pending) {
  wire::DirList list;
  list.dir = dir->number;
  list.parent = parent;
  list.name = dir->node->parent() == nullptr ? std::string() : dir->node->name();
  list.last = false;
  bool complete = true;

  auto fd = tree_->open(dir->node);
  Result<io::Metadata> meta = fd ? io::stat_fd((*fd)->get()) : std::unexpected(fd.error());
  if (fd && meta) {
    list.meta = to_wire(*meta);
    auto attrs = io::read_xattrs(io::XattrTarget::of_fd((*fd)->get()), options_.xattrs,
                                 wire::kMaxXattrBytes);
    if (attrs) {
      list.meta.xattrs = to_wire(std::move(*attrs));
    } else {
      report(*dir->node, {}, attrs.error(), complete);
    }
    auto names = io::read_names((*fd)->get());
    if (names) {
      dir->names = std::move(*names);
    } else {
      report(*dir->node, {}, names.error(), complete);
    }
  } else {
    // Not to be opened: its metadata can still be told from the parent, so that at least an empty
    // one arrives.
    const Error& error = fd ? meta.error() : fd.error();
    auto parent_fd = dir->node->parent() == nullptr ? Result<io::DirFd>(std::unexpected(error))
                                                    : tree_->open(dir->node->parent());
    auto outside = parent_fd ? io::stat_at((*parent_fd)->get(), dir->node->name())
                             : Result<io::Metadata>(std::unexpected(parent_fd.error()));
    // Inside a directory that was removed, Landlock answers EACCES where the truth is that the item
    // is gone.
    const bool gone = error.os_errno == ENOENT || error.os_errno == ESTALE ||
                      (error.os_errno == EACCES && dir->node->parent() != nullptr &&
                       (!outside || !still_below(dir->node)));
    if (gone) {
      tally_.item_changed(dir->node->path(), "vanished before it could be read");
      complete = false;
    } else {
      report(*dir->node, {}, error, complete);
    }
    if (!outside || outside->type != io::FileType::kDirectory) {
      if (dir->node->parent() == nullptr) return std::unexpected(error);
      const std::lock_guard lock(mutex_);
      dirs_.erase(dir->number);
      return {};
    }
    list.meta = to_wire(*outside);
  }

  tally_.dirs_total.fetch_add(1);
  std::size_t bytes = 0;
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < dir->names.size(); ++i) {
    if (tally_.stopped()) return fail_with(Code::kCancelled, "walk stopped");
    wire::Entry entry;
    if (!describe_entry(dir, (*fd)->get(), i, entry, complete)) continue;
    if (entry.meta.type == wire::EntryType::kDirectory && !entry.no_descend) {
      pending.subdirs.push_back(static_cast<std::uint32_t>(i));
    } else if (entry.meta.type == wire::EntryType::kFile) {
      tally_.files_total.fetch_add(1);
      tally_.bytes_total.fetch_add(entry.meta.size);
    } else if (entry.meta.type != wire::EntryType::kDirectory) {
      tally_.files_total.fetch_add(1);
    }
    bytes += rough_bytes(entry);
    list.entries.push_back(std::move(entry));
    {
      const std::lock_guard lock(dir->mutex);
      dir->listed.push_back(static_cast<std::uint32_t>(i));
    }
    ++index;
    if (list.entries.size() >= kChunkEntries || bytes >= kChunkBytes) {
      const std::string own_name = list.name;
      VF_TRY(sink.on_list(std::move(list)));
      list = {};
      list.dir = dir->number;
      list.parent = parent;
      list.name = own_name;
      list.first = false;
      list.last = false;
      list.first_index = index;
      bytes = 0;
    }
  }
  list.last = true;
  list.complete = complete;
  return sink.on_list(std::move(list));
}

Status SourceTree::walk_image(ListSink& sink) {
  wire::DirList list;
  list.image = true;
  VF_ASSIGN(wire::EntryMeta meta, describe(image_.get()));
  VF_ASSIGN(meta.size, io::data_size(image_.get()));
  meta.hardlink_group = 0;
  tally_.files_total.fetch_add(1);
  tally_.bytes_total.fetch_add(meta.size);
  wire::Entry entry;
  entry.meta = std::move(meta);
  list.entries.push_back(std::move(entry));
  return sink.on_list(std::move(list));
}

Status SourceTree::walk(ListSink& sink) {
  if (tree_ == nullptr) return walk_image(sink);
  {
    const std::lock_guard lock(mutex_);
    dirs_.clear();
  }
  groups_.clear();
  const auto begin = [&](io::DirPtr node) {
    auto dir = std::make_shared<SourceDir>();
    dir->number = next_dir_++;
    dir->node = std::move(node);
    const std::lock_guard lock(mutex_);
    dirs_.emplace(dir->number, dir);
    return dir;
  };
  next_dir_ = 0;
  std::vector<Pending> stack;
  stack.push_back({begin(tree_->root()), {}, 0});
  VF_TRY(list_directory(sink, 0, stack.back().dir, stack.back()));
  while (!stack.empty()) {
    Pending& top = stack.back();
    if (top.next == top.subdirs.size()) {
      stack.pop_back();
      continue;
    }
    const std::string name(top.dir->names.name(top.subdirs[top.next++]));
    const std::uint32_t parent = top.dir->number;
    Pending below{begin(tree_->child(top.dir->node, name)), {}, 0};
    VF_TRY(list_directory(sink, parent, below.dir, below));
    if (!below.subdirs.empty()) stack.push_back(std::move(below));
  }
  return {};
}

bool SourceTree::still_below(io::DirPtr node) {
  for (; node->parent() != nullptr; node = node->parent()) {
    auto above = tree_->open(node->parent());
    if (!above || !io::stat_at((*above)->get(), node->name())) return false;
  }
  return true;
}

SourceTree::SourceDirPtr SourceTree::find(std::uint32_t dir) const {
  const std::lock_guard lock(mutex_);
  const auto it = dirs_.find(dir);
  return it == dirs_.end() ? nullptr : it->second;
}

Result<SourceTree::OpenedFile> SourceTree::open_file(std::uint32_t dir, std::uint32_t index) {
  OpenedFile opened;
  if (tree_ == nullptr) {
    if (dir != 0 || index != 0)
      return fail_with(Code::kProtocol, "request for an item that was never listed");
    opened.fd = base::UniqueFd(::fcntl(image_.get(), F_DUPFD_CLOEXEC, 0));
    if (!opened.fd) return fail_sys("dup");
    VF_ASSIGN(opened.meta, io::stat_fd(opened.fd.get()));
    VF_ASSIGN(opened.meta.size, io::data_size(opened.fd.get()));
    return opened;
  }
  const SourceDirPtr source = find(dir);
  const std::string name = source == nullptr ? std::string() : source->name_of(index);
  if (name.empty()) return fail_with(Code::kProtocol, "request for an item that was never listed");
  auto dir_fd = tree_->open(source->node);
  if (!dir_fd) {
    // The directory was listed, so it is there no more.
    const int reason = dir_fd.error().os_errno;
    if (reason == EACCES || reason == ESTALE || reason == ENOTDIR || reason == ELOOP) {
      return fail_sys("open " + name, ENOENT);
    }
    return std::unexpected(std::move(dir_fd).error());
  }
  const io::DirFd fd = *dir_fd;
  // O_NONBLOCK: a fifo swapped in for the file must not block the open. O_NOATIME only works for
  // owners.
  auto file = io::open_at(fd->get(), name, O_RDONLY | O_NONBLOCK | O_NOATIME);
  if (!file && file.error().os_errno == EPERM)
    file = io::open_at(fd->get(), name, O_RDONLY | O_NONBLOCK);
  if (!file) {
    // Landlock answers EACCES for what was moved out of the root, or whose directory was removed,
    // after it was listed.
    const bool gone = file.error().os_errno == EACCES &&
                      (!io::stat_at(fd->get(), name) || !still_below(source->node));
    if (gone) return fail_sys("open " + name, ENOENT);
    return std::unexpected(std::move(file).error());
  }
  VF_ASSIGN(opened.meta, io::stat_fd(file->get()));
  if (opened.meta.type != io::FileType::kFile)
    return fail_sys("open " + name + " (no longer a file)", EINVAL);
  opened.fd = std::move(*file);
  return opened;
}

Result<wire::EntryMeta> SourceTree::describe(int fd) const {
  VF_ASSIGN(const io::Metadata meta, io::stat_fd(fd));
  wire::EntryMeta out = to_wire(meta);
  if (meta.type == io::FileType::kFile) {
    VF_ASSIGN(io::XattrList attrs,
              io::read_xattrs(io::XattrTarget::of_fd(fd), options_.xattrs, wire::kMaxXattrBytes));
    out.xattrs = to_wire(std::move(attrs));
  }
  return out;
}

std::string SourceTree::path_of(std::uint32_t dir, std::uint32_t index) const {
  if (tree_ == nullptr) return label_;
  const SourceDirPtr source = find(dir);
  if (source == nullptr) return "?";
  return source->node->path_of(source->name_of(index));
}

void SourceTree::release(std::uint32_t dir) {
  SourceDirPtr dropped;
  const std::lock_guard lock(mutex_);
  const auto it = dirs_.find(dir);
  if (it == dirs_.end()) return;
  dropped = std::move(it->second);
  dirs_.erase(it);
}

}  // namespace volferry::session
