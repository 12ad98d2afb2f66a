// SPDX-License-Identifier: Apache-2.0
// Hard links at the destination. The first listed name of a group is its leader and gets the
// content; later names are linked to it once it stands. An inode of the destination serves one
// group only: a name that shares it with another group, or with a file that has one name at the
// source, gets an inode of its own.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/session/dest_dir.h"
#include "engine/session/extras.h"
#include "engine/session/tally.h"

namespace volferry::session {

class Links {
 public:
  Links(io::DirTree& tree, const VolumeOptions& options, DirKeeper& keeper, Remover& remover,
        Tally& tally)
      : tree_(tree), options_(options), keeper_(keeper), remover_(remover), tally_(tally) {}

  // True if `group` has no leader yet: the caller's entry is it, and must end by leader_ready or
  // leader_failed.
  bool claim_leader(std::uint64_t group, const DestDirPtr& dir, const std::string& name);
  // Whether the leader may keep the inode that it has now (several names): false if it belongs to
  // another group.
  bool claim_inode(std::uint64_t group, const io::Metadata& old);
  void leader_ready(std::uint64_t group);
  void leader_failed(std::uint64_t group);

  // A later name. Linked now or when the leader is ready; counts as a
  // file of `dir` until then.
  void add(std::uint64_t group, const DestDirPtr& dir, const std::string& name);
  // The leader's path, for reports.
  std::string leader_path(std::uint64_t group) const;
  // Read-only modes: is `old` the inode that the leader has now?
  bool same_inode(std::uint64_t group, const io::Metadata& old);
  void set_leader_inode(std::uint64_t group, const io::Metadata& old);

 private:
  struct Name {
    DestDirPtr dir;
    std::string name;
  };
  struct Group {
    Name leader;
    enum class State : std::uint8_t { kPending, kReady, kFailed } state = State::kPending;
    std::uint64_t dev = 0;
    std::uint64_t ino = 0;
    std::vector<Name> waiting;
  };
  void link(const Name& leader, const Name& name);

  io::DirTree& tree_;
  const VolumeOptions& options_;
  DirKeeper& keeper_;
  Remover& remover_;
  Tally& tally_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Group> groups_;
  std::unordered_map<std::uint64_t, std::uint64_t> inode_owner_;  // inode -> group; one file system
};

}  // namespace volferry::session
