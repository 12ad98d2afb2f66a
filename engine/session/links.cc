// SPDX-License-Identifier: Apache-2.0
#include "engine/session/links.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "engine/session/place.h"
#include "engine/session/temp_name.h"

namespace volferry::session {

bool Links::claim_leader(std::uint64_t group, const DestDirPtr& dir, const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto [it, fresh] = groups_.try_emplace(group);
  if (fresh) it->second.leader = {dir, name};
  return fresh;
}

bool Links::claim_inode(std::uint64_t group, const io::Metadata& old) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = inode_owner_.try_emplace(old.ino, group);
  return it->second == group;
}

void Links::set_leader_inode(std::uint64_t group, const io::Metadata& old) {
  const std::lock_guard lock(mutex_);
  groups_[group].dev = old.dev;
  groups_[group].ino = old.ino;
}

bool Links::same_inode(std::uint64_t group, const io::Metadata& old) {
  const std::lock_guard lock(mutex_);
  const Group& entry = groups_[group];
  return entry.ino == old.ino && entry.dev == old.dev;
}

void Links::leader_ready(std::uint64_t group) {
  std::vector<Name> waiting;
  Name leader;
  {
    const std::lock_guard lock(mutex_);
    Group& entry = groups_[group];
    entry.state = Group::State::kReady;
    leader = entry.leader;
    waiting.swap(entry.waiting);
  }
  for (const Name& name : waiting) link(leader, name);
}

void Links::leader_failed(std::uint64_t group) {
  std::vector<Name> waiting;
  {
    const std::lock_guard lock(mutex_);
    Group& entry = groups_[group];
    entry.state = Group::State::kFailed;
    waiting.swap(entry.waiting);
  }
  for (const Name& name : waiting) {
    tally_.item_error(name.dir->path_of(name.name), 0,
                      "not linked: the first name of its file failed");
    keeper_.file_done(name.dir);
  }
}

void Links::add(std::uint64_t group, const DestDirPtr& dir, const std::string& name) {
  keeper_.add_file(*dir);
  Name leader;
  {
    const std::lock_guard lock(mutex_);
    Group& entry = groups_[group];
    if (entry.state == Group::State::kPending) {
      entry.waiting.push_back({dir, name});
      return;
    }
    if (entry.state == Group::State::kReady) leader = entry.leader;
  }
  if (leader.dir == nullptr) {
    tally_.item_error(dir->path_of(name), 0, "not linked: the first name of its file failed");
    return keeper_.file_done(dir);
  }
  link(leader, {dir, name});
}

std::string Links::leader_path(std::uint64_t group) const {
  const std::lock_guard lock(mutex_);
  const auto it = groups_.find(group);
  return it == groups_.end() ? std::string()
                             : it->second.leader.dir->path_of(it->second.leader.name);
}

void Links::link(const Name& leader, const Name& name) {
  const auto make = [&]() -> Status {
    VF_ASSIGN(const io::DirFd from, tree_.open(leader.dir->node));
    VF_ASSIGN(const io::DirFd to, tree_.open(name.dir->node));
    auto wanted = io::stat_at(from->get(), leader.name);
    if (!wanted) return std::unexpected(std::move(wanted).error());
    auto now = io::stat_at(to->get(), name.name);
    if (now && now->ino == wanted->ino && now->dev == wanted->dev) return {};
    // link(2) does not replace: link to a temporary name, then rename over the old one.
    const std::string temp = temp_name(name.name);
    const std::string& target = now ? temp : name.name;
    if (now) (void)::unlinkat(to->get(), temp.c_str(), 0);
    if (::linkat(from->get(), leader.name.c_str(), to->get(), target.c_str(), 0) != 0) {
      return fail_sys("link to " + leader.dir->path_of(leader.name));
    }
    if (!now) return {};
    Status placed = place(to->get(), temp, name.name, name.dir->path_of(name.name), remover_,
                          !options_.filter.empty());
    if (!placed) (void)::unlinkat(to->get(), temp.c_str(), 0);
    return placed;
  };
  if (auto made = make(); !made) tally_.item_error(name.dir->path_of(name.name), made.error());
  keeper_.file_done(name.dir);
}

}  // namespace volferry::session
