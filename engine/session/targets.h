// SPDX-License-Identifier: Apache-2.0
// The file being built for one job: a temporary beside the target, the target itself (--inplace,
// devices), and the old file as basis.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/base/bytes.h"
#include "engine/session/disk_pace.h"
#include "engine/session/extras.h"
#include "engine/session/file_job.h"
#include "engine/session/workers.h"

namespace volferry::session {

struct Target {
  base::UniqueFd out;
  base::UniqueFd direct_out;  // the same file with O_DIRECT, or none
  std::string temp;           // the name it has for now; empty: in place
  bool cloned = false;        // started as a reflink copy of the basis
  bool resumed = false;       // an interrupted run's temporary, with its content
  bool in_place() const { return temp.empty(); }
  // Unwritten parts already hold the basis's bytes.
  bool holds_basis() const { return in_place() || cloned; }
};

class Targets {
 public:
  struct Parts {
    io::DirTree& tree;
    const VolumeOptions& options;
    Installer& installer;
    Remover& remover;
    Tally& tally;
    DiskPace& pace;
    bool direct_writes = false;  // large files by O_DIRECT where possible
    bool always_direct = false;
  };
  explicit Targets(const Parts& parts) : parts_(parts) {}

  // From now on what open_basis opens is read from the device again (a hint to the kernel: clean
  // pages are dropped).
  void reread_from_device() { reread_ = true; }
  // Whether the job will be built in the existing file.
  bool in_place(const FileJob& job) const {
    return job.device || (parts_.options.inplace && job.old.has_value() && !job.new_inode);
  }
  // The old file, to read. An empty descriptor where there is none.
  Result<base::UniqueFd> open_basis(const FileJob& job);
  // An interrupted run's temporary if it is safe to go on with (a regular file of ours with one
  // name), else empty.
  base::UniqueFd open_interrupted(const FileJob& job);
  // Opens or creates the file to build, of the job's size. `interrupted`: what open_interrupted
  // gave.
  Result<Target> create(const FileJob& job, base::UniqueFd interrupted, int basis);
  // Writes a whole small file and installs it. `sparse`: 4 KiB blocks of zeros become holes.
  Status write_small(const FileJob& job, base::Bytes content, bool sparse);
  // For a small file with equal content: writes it anew where its blocks of zeros are holes and
  // should not be, or the other way round. True if it did.
  Result<bool> match_sparse(const FileJob& job, bool sparse);
  // Cuts to size, puts on the metadata and gives the file its name.
  Status install(const FileJob& job, Target& target);
  // Removes an interrupted run's temporary that will not be needed.
  void drop_interrupted(const FileJob& job);
  // Writes to `direct_out` without waiting: `done` is called later, on the same worker.
  void write_direct(Worker& worker, const Target& target, std::uint64_t offset,
                    base::Buffer content, std::size_t length, std::function<void(Status)> done);
  // Whether that is to be used for what comes next.
  bool writes_directly(const Target& target) const {
    return target.direct_out && parts_.pace.worth_it();
  }
  // Forgets a target that will not be installed. `keep`: leave the temporary for a later run to go
  // on with.
  void discard(const FileJob& job, Target& target, bool keep);

 private:
  Result<base::UniqueFd> create_temp(int dirfd, const std::string& temp,
                                     const wire::EntryMeta& want);
  Status dress(const FileJob& job, Target& target);

  Parts parts_;
  bool reread_ = false;
};

}  // namespace volferry::session
