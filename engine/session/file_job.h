// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/session/dest_dir.h"
#include "engine/session/installer.h"

namespace volferry::session {

// One regular file (or image) whose content is to be fetched or compared.
struct FileJob {
  std::uint32_t dir_number = 0;
  std::uint32_t index = 0;  // in the source directory
  DestDirPtr dir;
  std::string name;  // in dir
  wire::EntryMeta want;
  std::optional<Present> old;             // the regular file that has the name now
  bool compare_only = false;              // dry run and verify: outcome, no change
  bool new_inode = false;                 // the old file has other names that must keep theirs
  bool resume = false;                    // an interrupted run has left a temporary
  bool device = false;                    // the destination is a block device
  bool content_only = false;              // a device is involved: no metadata is carried
  MetaDiff diff;                          // of the old file's metadata
  std::atomic<std::uint64_t> counted{0};  // bytes that progress shows already
  int tries = 0;                          // how often it has changed under us

  std::string path() const { return dir->path_of(name); }
};
using FileJobPtr = std::shared_ptr<FileJob>;

enum class Outcome : std::uint8_t {
  kInstalled,  // content written and in place
  kSame,       // content was equal; metadata has been set where it differed
  kDiffers,    // compare_only
  kFailed,     // reported already
};

// Told once for each job handed to a ContentSource, from any thread.
class JobSink {
 public:
  virtual ~JobSink() = default;
  virtual void job_done(const FileJobPtr& job, Outcome outcome) = 0;
};

// Where content comes from: the peer, or a local source.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  // Starts the job; may wait for room.
  virtual void fetch(FileJobPtr job) = 0;
  // All that is wanted of the directory being merged has been handed over: what was gathered to be
  // done together starts now.
  virtual void dir_listed() {}
  // No further file of that directory will be fetched.
  virtual void dir_released(std::uint32_t dir) = 0;
  // Ends what is still open after the session was stopped, and waits until nothing runs that could
  // touch a job.
  virtual void quiesce() = 0;
};

}  // namespace volferry::session
