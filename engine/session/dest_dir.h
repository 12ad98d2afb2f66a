// SPDX-License-Identifier: Apache-2.0
// The directories of the destination while they are worked on. A directory gets its own owner,
// mode, attributes and times only once everything inside it is done, since work inside changes them
// or may need a mode that the final one does not allow.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "engine/io/dir.h"
#include "engine/io/metadata.h"
#include "engine/session/installer.h"

namespace volferry::session {

struct DestDir {
  std::uint32_t number = 0;  // the directory's number in the list
  std::shared_ptr<DestDir> parent;
  std::string path;  // below the root, for reports
  io::DirPtr node;   // null where it does not exist and must not be made (dry run, verify)
  wire::EntryMeta want;
  bool default_acl = false;  // new entries inherit one
  bool made = false;         // by this run
  bool failed = false;       // could not be made: entries are skipped
  bool restore = false;      // its mode was widened for the work; guarded by DirKeeper

  // Open work: files being fetched and the merge itself; and, beyond that, directories below.
  std::atomic<std::uint32_t> files{1};
  std::atomic<std::uint32_t> refs{
      2};  // the files together, the listing of what is below, and each directory below

  std::string path_of(std::string_view name) const {
    return path.empty() ? std::string(name) : path + "/" + std::string(name);
  }
};
using DestDirPtr = std::shared_ptr<DestDir>;

// Counts the open work of each directory and finishes it when none is left.
class DirKeeper {
 public:
  // `released` is called once for each directory, when no file of it will be asked for again.
  DirKeeper(io::DirTree& tree, const VolumeOptions& options, Installer& installer, Tally& tally,
            std::function<void(std::uint32_t)> released);

  // A read-only pass changes no directory.
  void set_read_only(bool read_only) { read_only_ = read_only; }
  DestDirPtr begin(std::uint32_t number, DestDirPtr parent, std::string path, io::DirPtr node);
  void add_file(DestDir& dir) { dir.files.fetch_add(1); }
  // The merge of the directory, or one of its files, is done.
  void file_done(const DestDirPtr& dir);
  // Everything below the directory has been listed.
  void subtree_listed(const DestDirPtr& dir) { unref(dir); }

  // Makes the directory usable for its owner where its mode does not allow that (for movers without
  // CAP_DAC_OVERRIDE). `dirfd` and `name` as for stat_at.
  void widen(const DestDirPtr& dir, int dirfd, const std::string& name, const io::Metadata& meta);
  // After an abort: gives widened directories that never finished the mode they should have.
  void restore_all();

 private:
  void unref(DestDirPtr dir);
  void finish(const DestDirPtr& dir);

  io::DirTree& tree_;
  const VolumeOptions& options_;
  Installer& installer_;
  Tally& tally_;
  std::function<void(std::uint32_t)> released_;
  bool read_only_ = false;
  std::mutex mutex_;
  std::unordered_set<DestDirPtr> widened_;
};

}  // namespace volferry::session
