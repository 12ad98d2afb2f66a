// SPDX-License-Identifier: Apache-2.0
// The source volume as the protocol sees it: directories listed in order, files named by (directory
// number, index). Memory: the names of directories whose files may still be asked for.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/unique_fd.h"
#include "engine/io/dir.h"
#include "engine/io/metadata.h"
#include "engine/session/tally.h"
#include "engine/session/volume_options.h"
#include "engine/transport/wire/messages.h"

namespace volferry::session {

// Takes the list, chunk after chunk; may wait for room. An error ends the walk.
class ListSink {
 public:
  virtual ~ListSink() = default;
  virtual Status on_list(wire::DirList list) = 0;
};

class SourceTree {
 public:
  // `root`: an open directory, regular file or block device. All references outlive the tree.
  // `label`: the root's path, for messages about an image.
  SourceTree(base::UniqueFd root, std::string label, const VolumeOptions& options, Tally& tally);
  ~SourceTree();

  // Walks the whole volume once into `sink`. Directory numbers are fresh in each walk. Unreadable
  // items are reported to the tally and counted as source errors; the walk goes on.
  Status walk(ListSink& sink);

  struct OpenedFile {
    base::UniqueFd fd;
    io::Metadata meta;
  };
  // Opens a listed regular file (or the image). Errors: kProtocol for numbers that were never
  // listed or are released, kSystem from open; ENOENT tells that it vanished, ELOOP or EINVAL that
  // it is no longer a regular file.
  Result<OpenedFile> open_file(std::uint32_t dir, std::uint32_t index);
  // The metadata and attributes of an open file as they are now, in wire form.
  Result<wire::EntryMeta> describe(int fd) const;
  // The path for messages: below the root, or an image's label; "?" for unknown numbers.
  std::string path_of(std::uint32_t dir, std::uint32_t index) const;
  bool is_image() const { return tree_ == nullptr; }
  // No file of this directory will be opened again.
  void release(std::uint32_t dir);

 private:
  struct SourceDir;
  struct Pending;
  using SourceDirPtr = std::shared_ptr<SourceDir>;

  Status walk_image(ListSink& sink);
  Status list_directory(ListSink& sink, std::uint32_t parent, const SourceDirPtr& dir,
                        Pending& pending);
  // False where the item is left out; true with `entry` filled.
  bool describe_entry(const SourceDirPtr& dir, int dirfd, std::size_t name_index,
                      wire::Entry& entry, bool& complete);
  std::uint64_t group_of(const io::Metadata& meta);
  // Whether the directory can still be reached from the root by the names it was listed under.
  bool still_below(io::DirPtr node);
  SourceDirPtr find(std::uint32_t dir) const;
  void report(const io::DirNode& dir, std::string_view name, const Error& error, bool& complete);

  const VolumeOptions& options_;
  Tally& tally_;
  const std::string label_;
  std::unique_ptr<io::DirTree> tree_;  // null for an image
  base::UniqueFd image_;
  std::uint64_t root_dev_ = 0;
  std::uint32_t next_dir_ = 0;

  struct InodeKey {
    std::uint64_t dev;
    std::uint64_t ino;
    bool operator==(const InodeKey&) const = default;
  };
  struct InodeHash {
    std::size_t operator()(const InodeKey& key) const {
      return key.ino * 0x9e3779b97f4a7c15ull ^ key.dev;
    }
  };
  struct Group {
    std::uint64_t number;
    std::uint64_t left;  // names not yet seen
  };
  std::unordered_map<InodeKey, Group, InodeHash> groups_;
  std::uint64_t next_group_ = 1;

  mutable std::mutex mutex_;  // guards dirs_ only
  std::unordered_map<std::uint32_t, SourceDirPtr> dirs_;
};

}  // namespace volferry::session
