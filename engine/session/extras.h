// SPDX-License-Identifier: Apache-2.0
// What the destination has and the source has not: removal, only after the whole source was listed
// without error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/io/dir.h"
#include "engine/session/dest_dir.h"
#include "engine/session/tally.h"

namespace volferry::session {

// Removes trees below a held directory, never following a link. Shared by --delete and by type
// changes.
class Remover {
 public:
  Remover(const VolumeOptions& options, Tally& tally, bool can_override)
      : options_(options), tally_(tally), can_override_(can_override) {}

  // Removes `name`, with everything below if it is a directory. What the filter excludes is kept,
  // and so are the directories that hold it: ENOTEMPTY then. In a dry run only the reports are
  // made.
  enum class Report : std::uint8_t { kSilent, kCount, kItemize };
  Status remove(int dirfd, const std::string& name, const std::string& path,
                const io::Metadata& meta, Report report);
  // True if --delete must leave this name alone.
  bool is_protected(const std::string& path, const io::Metadata& meta, bool at_root) const;

 private:
  Status remove_children(int dirfd, const std::string& path, Report report, bool& kept);
  void count(const std::string& path, bool directory, Report report);

  const VolumeOptions& options_;
  Tally& tally_;
  const bool can_override_;
};

// The names found to be extra, until the end of the pass. Bounded: past the bound names are dropped
// and `overflow` asks for another pass.
class Extras {
 public:
  void add(const io::DirPtr& node, const std::string& path, std::string name);
  bool overflow() const { return overflow_; }
  bool empty() const { return dirs_.empty(); }
  // Removes all; returns how many names went. `times`: the directories keep their mtimes.
  std::uint64_t remove_all(io::DirTree& tree, Remover& remover, Tally& tally, bool read_only,
                           bool itemize);

 private:
  struct Dir {
    io::DirPtr node;
    std::string path;
    std::vector<std::string> names;
  };
  static constexpr std::size_t kMaxBytes = 64u << 20;
  std::vector<Dir> dirs_;
  std::size_t bytes_ = 0;
  bool overflow_ = false;
};

}  // namespace volferry::session
