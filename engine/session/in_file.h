// SPDX-License-Identifier: Apache-2.0
// One large file on its way in: its basis is signed segment by segment, and ranges are rebuilt,
// verified and written in whatever order they come. See docs/protocol.md, "Files".
//
// A range is built in memory, compared with the digest that came with it, and only then written; a
// mismatch is asked for again as one literal, and a second one fails the file. The target is only
// created when something has to be written, so a file that turns out equal costs no copy.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/delta/strong_hash.h"
#include "engine/session/body_coder.h"
#include "engine/session/file_job.h"
#include "engine/session/targets.h"
#include "engine/session/workers.h"
#include "engine/transport/channel.h"

namespace volferry::session {

// What all files on their way in share. References outlive them.
struct InParts {
  transport::Channel& channel;
  Workers& workers;
  base::BufferPool& pool;
  const delta::StrongHash& hash;
  const VolumeOptions& options;
  Targets& targets;
  Tally& tally;
  BodyCoder& coder;
  // Request numbers, never used twice in a session: answers of an earlier pass may still be on
  // their way.
  std::atomic<std::uint32_t>& next_request;
};

class InFile : public std::enable_shared_from_this<InFile> {
 public:
  // How a file ended; `again`: it changed at the source, `meta` is its new state, and it is to be
  // fetched anew.
  struct End {
    Outcome outcome = Outcome::kFailed;
    bool again = false;
    std::optional<wire::EntryMeta> meta;
  };
  // `ended` is called once, when no work on the file is left. `segment_done`: a segment of
  // signatures was answered.
  InFile(const InParts& parts, std::uint32_t req, FileJobPtr job,
         std::function<void(const End&)> ended, std::function<void()> segment_done);

  const FileJobPtr& job() const { return job_; }
  std::uint32_t req() const { return req_; }
  bool segmented() const { return segmented_; }
  // Its ranges are to be written in the order in which they come: built in place, with parts copied
  // from where they were before. Set by prepare().
  bool ordered() const { return ordered_; }
  // Opens the basis and says what to ask for. kSystem where the basis cannot be opened.
  Result<wire::FileRequest> prepare();
  // Signs and sends the next segment; false when there is none left (or the file is over).
  bool sign_next(Worker& worker);

  void on_range(Worker& worker, const wire::RangeData& data, base::Buffer body);
  void on_run(const wire::RangeRun& run);
  void on_end(wire::FileEnd end);
  void on_fine_request(Worker& worker, const wire::FineRequest& request);
  void on_rolling_request(const wire::RollingRequest& request);
  // The session is over: nothing more will come. Keeps the temporary for the next run.
  void abandon();

 private:
  // Keeps the file from ending while an operation runs on it.
  class Busy;
  enum class Piece : std::uint8_t { kWrite, kHole, kZero, kKeep };

  Status apply_range(Worker& worker, const wire::RangeData& data, base::Buffer body);
  Result<base::Buffer> build(const wire::RangeData& data, base::Buffer body, std::uint64_t length);
  Status write_range(Worker& worker, const wire::RangeData& data, base::Buffer content);
  Status apply_run(const wire::RangeRun& run);
  Status ask_again(std::uint64_t range);
  // Zeros where the basis has something else, or nothing: ranges [first, last).
  Status apply_zeros(std::uint64_t first, std::uint64_t last, wire::OpKind kind);
  // Content that is equal to the basis's (or the temporary's), and at the source a hole, or
  // allocated throughout.
  Status apply_equal(std::uint64_t begin, std::uint64_t end, bool hole);
  // One range of equal content of which parts are holes at the source.
  Status apply_equal_range(const wire::RangeData& data);
  Result<bool> allocated_as_wanted(std::uint64_t begin, std::uint64_t end, bool hole);
  // True if the part, allocated as wanted, was put aside, since there is no target yet.
  Result<bool> put_aside(std::uint64_t begin, std::uint64_t end, bool as_wanted, bool hole);
  // `fill`: all of it takes space in the target afterwards, else just what does in the basis.
  Status copy_basis(std::uint64_t begin, std::uint64_t end, bool fill);
  Status punch_kept(std::uint64_t begin, std::uint64_t end);
  // Calls `work(first, last, kept)` for runs of ranges that are alike in that.
  Status each_kept(std::uint64_t begin, std::uint64_t end,
                   const std::function<Status(std::uint64_t, std::uint64_t, bool)>& work);
  Status ensure_target();
  bool claim(std::uint64_t first, std::uint64_t count);  // false: a range is answered twice
  void settle(std::uint64_t first, std::uint64_t count);
  Status finish();
  void fail(const Error& error);
  void leave();
  bool kept(std::uint64_t range) const;  // the target already holds the basis's bytes there
  int read_fd(std::uint64_t range) const;

  InParts parts_;
  const std::uint32_t req_;
  const FileJobPtr job_;
  std::function<void(const End&)> ended_;
  std::function<void()> segment_done_;

  bool segmented_ = false;
  bool ordered_ = false;
  bool allocation_ = false;  // holes matter, and this side's file system tells them
  std::uint64_t size_ = 0;
  std::uint64_t ranges_ = 0;
  base::UniqueFd basis_;
  std::uint64_t basis_size_ = 0;
  base::UniqueFd interrupted_;  // until the target takes it
  int interrupted_fd_ = -1;     // its number, also afterwards

  std::mutex mutex_;  // guards all below
  Target target_;
  bool have_target_ = false;
  std::vector<bool> from_temp_;  // ranges that the interrupted temporary has data for
  std::vector<bool> zero_sig_;   // ranges signed as zero
  std::vector<bool> answered_;
  std::vector<std::uint32_t> segment_left_;  // unanswered ranges of each signed segment
  std::set<std::uint64_t> retried_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      deferred_;  // equal parts, allocated as wanted, met before there was a target
  std::uint64_t next_segment_ = 0;
  std::uint64_t left_ = 0;
  unsigned busy_ = 0;
  bool changed_ = false;  // anything differs from the basis
  bool over_ = false;
  bool reported_ = false;
  std::optional<wire::FileEnd> source_end_;
  End end_;
};

}  // namespace volferry::session
