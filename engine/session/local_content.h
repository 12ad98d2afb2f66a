// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/base/rate_limiter.h"
#include "engine/io/file.h"
#include "engine/session/file_job.h"
#include "engine/session/source_tree.h"
#include "engine/session/targets.h"
#include "engine/session/workers.h"

namespace volferry::session {

// Both volumes on this machine: no protocol and no hashes. A new file is a reflink where the file
// system can, else copied inside the kernel, holes skipped; what is written in place is compared
// first, and only blocks that differ are written.
class LocalContent final : public ContentSource {
 public:
  // References outlive it.
  // `limiter`: of bytes read and written, or null.
  LocalContent(SourceTree& source, Workers& workers, base::BufferPool& pool,
               const VolumeOptions& options, Targets& targets, Tally& tally,
               base::RateLimiter* limiter, JobSink& sink)
      : source_(source),
        workers_(workers),
        pool_(pool),
        options_(options),
        targets_(targets),
        tally_(tally),
        limiter_(limiter),
        sink_(sink) {}

  // On the merger's thread.
  void fetch(FileJobPtr job) override;
  void dir_listed() override;
  void dir_released(std::uint32_t dir) override { source_.release(dir); }
  void quiesce() override { tally_.stopped() ? workers_.stop() : workers_.drain(); }

 private:
  // Small files of one directory that one worker copies in one go: workers then seldom meet in a
  // directory, whose lock the kernel gives to one of them, and are woken once for many files.
  using Batch = std::vector<FileJobPtr>;
  static constexpr std::size_t kBatchFiles = 64;

  void run(Worker& worker, const FileJobPtr& job);
  // kMismatch: the source moved while it was read.
  Result<Outcome> copy(Worker& worker, FileJob& job);
  Result<Outcome> copy_opened(Worker& worker, FileJob& job, const SourceTree::OpenedFile& source);
  Result<bool> equal_content(int a, int b, std::uint64_t size);
  Result<bool> equal_part(std::uint8_t* scratch, int a, int b, io::Extent part);
  // The bytes lie in the worker's scratch block.
  static Result<base::Bytes> read_small(Worker& worker, int from, std::uint64_t size);
  Status copy_whole(Worker& worker, FileJob& job, int from, const Target& target,
                    std::uint64_t size);
  // Begins to copy `part` by direct writes, as far as they are possible and worth it; the rest it
  // gives back. Once the worker's queue is drained `written` has their first failure.
  Result<io::Extent> copy_direct(Worker& worker, FileJob& job, int from, const Target& target,
                                 io::Extent part, Status& written);
  Status copy_in_kernel(FileJob& job, int from, int to, io::Extent part);
  Result<base::Buffer> piece_buffer(Worker& worker);
  Status update_in_place(FileJob& job, const SourceTree::OpenedFile& source, int to,
                         std::uint64_t size);
  Status update_part(std::uint8_t* scratch, FileJob& job, const SourceTree::OpenedFile& source,
                     int to, io::Extent part);
  void count(FileJob& job, std::uint64_t bytes);
  // `scratch`: two pieces.
  Status update_range(std::uint8_t* scratch, int from, int to, std::uint64_t begin,
                      std::uint64_t length, bool device);
  // Waits until `bytes` more may be copied; kCancelled where the session stops meanwhile.
  Status pace(std::uint64_t bytes);
  Status clear_range(std::uint8_t* scratch, int to, std::uint64_t begin, std::uint64_t end);

  SourceTree& source_;
  Workers& workers_;
  base::BufferPool& pool_;
  const VolumeOptions& options_;
  Targets& targets_;
  Tally& tally_;
  base::RateLimiter* limiter_;
  JobSink& sink_;
  Batch batch_;
};

}  // namespace volferry::session
