// SPDX-License-Identifier: Apache-2.0
// What the session's tests share: a scratch folder, files by plain system calls, a comparison of
// trees that shares no code with the engine, and both ends of a sync in one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/unique_fd.h"
#include "engine/sync.h"

namespace volferry::session::testing {

// A folder below the working directory that goes away with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  // A new directory in it; its path.
  std::string make(const std::string& name) const;

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& content, unsigned mode = 0644);
std::string read_file(const std::string& path);
void set_mtime(const std::string& path, std::int64_t seconds, std::uint32_t nanoseconds);
bool exists(const std::string& path);  // a dangling link does
base::UniqueFd open_dir(const std::string& path);
// Seeded pseudo-random bytes.
std::string noise(std::size_t size, std::uint64_t seed);
// Sets a user attribute; false where the file system has none.
bool set_attribute(const std::string& path, const std::string& name, const std::string& value);

// One item of a tree as plain system calls tell it.
struct Item {
  char type = '?';  // of "fdlpsbc"
  unsigned mode = 0;
  unsigned uid = 0;
  unsigned gid = 0;
  std::int64_t mtime_s = 0;
  long mtime_ns = 0;
  std::uint64_t rdev = 0;
  std::uint64_t allocated = 0;  // bytes
  std::string content;          // of a file, or a link's target
  std::string linked_with;      // the first path of its inode
  std::map<std::string, std::string> attributes;
};
using Tree = std::map<std::string, Item>;  // by path below the root, "" for the root
Tree tree_of(const std::string& root);

struct TreeRules {
  bool holes = true;
  bool links = true;
  bool root = true;  // the root's own metadata
};
// Every difference as a line; empty where the trees are equal.
std::vector<std::string> differences(const Tree& want, const Tree& have, const TreeRules& rules);
std::vector<std::string> differences(const std::string& want, const std::string& have,
                                     const TreeRules& rules = {});

// Keeps what it is told.
class Recorder : public Observer {
 public:
  void on_change(const ItemChangeEvent& event) override;
  void on_error(const ItemError& error) override;
  void on_warning(const ItemError& warning) override;
  void on_difference(const DifferenceEvent& event) override;
  std::vector<ItemChangeEvent> changes() const;
  std::vector<ItemError> errors() const;
  std::vector<ItemError> warnings() const;
  std::vector<DifferenceEvent> found() const;
  // "path: kind,kind" sorted.
  std::vector<std::string> found_lines() const;

 private:
  mutable std::mutex mutex_;
  std::vector<ItemChangeEvent> changes_;
  std::vector<ItemError> errors_;
  std::vector<ItemError> warnings_;
  std::vector<DifferenceEvent> found_;
};

// Options that leave the machine's own choices out: threads backend, small memory, no flushing.
SyncOptions quick_options();

// `run_serve` on a loopback port over one folder, in a thread of its own.
class LoopbackServer {
 public:
  explicit LoopbackServer(const std::string& root, unsigned streams = 1);
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  TlsEndpoint endpoint(const std::string& subpath) const;

 private:
  std::unique_ptr<transport::Server> server_;
  std::vector<std::uint8_t> key_;
  std::uint16_t port_ = 0;
  base::NullLogger logger_;
  Observer observer_;
  StopFlag stop_{0};
  std::thread thread_;
};

// run_sync and run_verify with nobody to stop them.
Summary sync(const Endpoint& source, const Endpoint& destination, const SyncOptions& options);
Summary sync(const Endpoint& source, const Endpoint& destination, const SyncOptions& options,
             Observer& observer);
Summary verify(const Endpoint& left, const Endpoint& right, const SyncOptions& options,
               Observer& observer);
// The summary's failures in one text.
std::string text_of(const Summary& summary);

}  // namespace volferry::session::testing
