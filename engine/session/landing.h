// SPDX-License-Identifier: Apache-2.0
// The receiving end's passes: merge the list, fetch content, remove extras, verify, flush.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/io/dir.h"
#include "engine/session/extras.h"
#include "engine/session/file_job.h"
#include "engine/session/merger.h"
#include "engine/session/targets.h"
#include "engine/session/volume.h"

namespace volferry::session {

// Where a pass gets the source's list from.
class ListFeed {
 public:
  virtual ~ListFeed() = default;
  virtual Status begin(const wire::BeginPass& pass) = 0;
  // The next chunk; nothing at the list's end, once the tally knows of all errors of the walk.
  virtual Result<std::optional<wire::DirList>> next() = 0;
};

class Landing {
 public:
  struct Settings {
    DirectChoice direct = DirectChoice::kAuto;
  };
  // `destination` as create_destination left it. References outlive the landing.
  Landing(Volume& destination, wire::RootKind source, const VolumeOptions& options,
          const Settings& settings, Tally& tally);
  ~Landing();

  Targets& targets() { return *targets_; }
  // Makes the content source of one pass; destroyed before the pass's merger.
  using ContentFactory = std::function<std::unique_ptr<ContentSource>(JobSink&)>;
  // Runs all passes. `phase` is told what is going on.
  Status run(ListFeed& feed, const ContentFactory& make_content,
             const std::function<void(ProgressSnapshot::Phase)>& phase);
  // After an abort, once no job runs any more: puts directory modes right again.
  void restore();

 private:
  Status pass(ListFeed& feed, const ContentFactory& make_content, wire::BeginPass begin,
              bool verify);

  Volume& destination_;
  const VolumeOptions& options_;
  Tally& tally_;
  std::optional<Merger::Image> image_;
  bool root_missing_ = false;  // a dry run to a directory that is not there
  std::unique_ptr<io::DirTree> tree_;
  Installer installer_;
  Remover remover_;
  DiskPace pace_;
  std::unique_ptr<Targets> targets_;
  Extras extras_;
  std::function<void(std::uint32_t)> released_;
  std::unique_ptr<DirKeeper> keeper_;
};

}  // namespace volferry::session
