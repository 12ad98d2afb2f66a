// SPDX-License-Identifier: Apache-2.0
// One large file on its way out, and the work on it. See docs/protocol.md, "Files".
//
// Ranges of a request without basis are read and sent by `whole_job`. With a basis, `compare_job`
// takes the receiver's signatures segment by segment: equal ranges are answered at once, the others
// wait for the receiver's block hashes
// (`fine_job`). A range that shares no block with the basis at its own offset is, where a shift is
// plausible, put aside; once every other range is decided, `rolling_job` searches for those
// anywhere in the basis, a window of 1 GiB at a time. Each range is answered exactly once; the last
// answer is followed by FileEnd.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/delta/rolling.h"
#include "engine/io/file.h"
#include "engine/io/reader.h"
#include "engine/session/sender.h"

namespace volferry::session {

struct OutFile {
  explicit OutFile(wire::FileRequest r) : request(std::move(r)) {}

  const wire::FileRequest request;
  bool compare_only() const { return (request.flags & wire::kRequestCompareOnly) != 0; }
  bool rolling_allowed() const { return (request.flags & wire::kRequestRolling) != 0; }
  bool ordered() const { return (request.flags & wire::kRequestOrdered) != 0; }

  std::mutex open_mutex;
  bool opened = false;
  base::UniqueFd fd;
  base::UniqueFd direct_fd;  // the same file with O_DIRECT, or none
  io::Metadata before;
  std::uint64_t size = 0;
  std::uint64_t ranges = 0;

  std::atomic<std::uint64_t> left{0};  // ranges not yet answered
  std::atomic<std::uint32_t> next_segment{0};
  std::atomic<bool> over{false};

  std::mutex decide_mutex;      // guards all below
  std::uint64_t undecided = 0;  // ranges neither answered nor put aside
  std::set<std::uint64_t> unmatched;
  unsigned fine_hits = 0;
  unsigned fine_misses = 0;
  delta::RollingSignature signature;
  std::uint64_t signature_blocks = 0;  // expected in all
  bool awaiting_signature = false;
};

// The work of a sender on one file. Light: made for each job.
class OutFileWork {
 public:
  OutFileWork(Sender& sender, std::shared_ptr<OutFile> file)
      : sender_(sender), parts_(sender.parts_), file_(std::move(file)) {}

  void whole_job(Worker& worker);
  void compare_job(Worker& worker, const wire::SegmentRequest& request);
  void fine_job(Worker& worker, const wire::FineHashes& hashes);
  void rolling_job(Worker& worker);
  void retry_job(std::uint64_t range);
  // A part of the rolling signature; true once it is whole.
  Result<bool> add_signature(const wire::RollingSignature& part);
  // Answers a file of no bytes, or starts `whole_job`s.
  void start_whole();

 private:
  // Holes and data of one segment.
  struct SegmentMap {
    std::vector<io::Extent> data;
    bool all_hole(std::uint64_t begin, std::uint64_t end) const;
    bool all_data(std::uint64_t begin, std::uint64_t end) const;
  };
  class Runs;

  bool ensure_open();
  void end(wire::FileResult result, const Error* error);
  void answered(std::uint64_t count);
  void finish();
  void decided(std::uint64_t count);
  void begin_rolling();
  bool put_aside(std::uint64_t range);

  Result<SegmentMap> map_segment(std::uint64_t begin, std::uint64_t end) const;
  void mark_holes(std::vector<wire::RangeOp>& ops, std::uint64_t offset,
                  const SegmentMap& map) const;
  // Of a range that has the basis's content: where its holes are.
  Status send_equal(std::uint64_t range, const SegmentMap& map);
  Status send_range(std::uint64_t range, base::Buffer content, std::vector<wire::RangeOp> ops,
                    const delta::Digest& digest);
  // Queues the ranges [first, last) that have data, in order.
  void queue_reads(io::ReadAhead& reader, const SegmentMap& map, std::uint64_t first,
                   std::uint64_t last) const;
  Status send_plain(std::uint64_t range, base::Buffer content, const SegmentMap& map);
  Result<base::Buffer> read_range(std::uint64_t range);
  void failed(const Error& error);

  Sender& sender_;
  Sender::Parts& parts_;
  std::shared_ptr<OutFile> file_;
};

}  // namespace volferry::session
