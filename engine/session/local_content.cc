// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_content.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "engine/delta/geometry.h"
#include "engine/delta/zero.h"
#include "engine/io/file.h"
#include "engine/session/allocation.h"
#include "engine/session/convert.h"
#include "engine/session/segments.h"
#include "engine/session/sizes.h"

namespace volferry::session {

namespace {
// Compared and copied by this much at a time: two of them fit a core's L2 cache here (1 MiB), and a
// system call for each costs below a hundredth of the copy.
constexpr std::uint64_t kPiece = 256u << 10;
// Up to here a file is read and written whole: quicker than a clone or copy_file_range, and nothing
// worth sharing.
constexpr std::uint64_t kSmallBytes = 16u << 10;

// An error of the source, told apart from those of the destination.
Error source_error(Error error) {
  error.code = Code::kSourceRead;
  return error;
}
}  // namespace

void LocalContent::fetch(FileJobPtr job) {
  const bool small = job->want.size <= kPackFileBytes;
  batch_.push_back(std::move(job));
  if (!small || batch_.size() >= kBatchFiles) dir_listed();
}

void LocalContent::dir_listed() {
  if (batch_.empty()) return;
  workers_.post(Workers::Lane::kNormal, [this, batch = std::exchange(batch_, {})](Worker& worker) {
    for (const FileJobPtr& job : batch) run(worker, job);
  });
}

void LocalContent::run(Worker& worker, const FileJobPtr& job) {
  for (;;) {
    if (tally_.stopped() || (tally_.is_full() && !job->compare_only)) {
      return sink_.job_done(job, Outcome::kFailed);
    }
    auto outcome = copy(worker, *job);
    if (outcome) return sink_.job_done(job, *outcome);
    const Error& error = outcome.error();
    if (error.code == Code::kMismatch && ++job->tries < kChangeRetries) continue;
    if (!job->compare_only && !tally_.stopped()) targets_.drop_interrupted(*job);
    const std::string path = job->path();
    if (error.code == Code::kMismatch) {
      tally_.item_changed(path, "kept changing while it was read");
    } else if (error.code == Code::kSourceRead && error.os_errno == ENOENT) {
      tally_.item_changed(path, "vanished before it could be read");
    } else if (error.code == Code::kSourceRead) {
      const std::string where = source_.is_image() ? source_.path_of(0, 0) + ": " : std::string();
      tally_.source_error(path, error.os_errno, where + error.context);
    } else {
      tally_.destination_error(path, error);
    }
    return sink_.job_done(job, Outcome::kFailed);
  }
}

Result<Outcome> LocalContent::copy(Worker& worker, FileJob& job) {
  tally_.bytes_done.fetch_sub(job.counted.exchange(0));  // of a try that failed
  auto source = source_.open_file(job.dir_number, job.index);
  if (!source) return std::unexpected(source_error(source.error()));
  if (source->meta.size != job.want.size || source->meta.mtime != mtime_of(job.want)) {
    auto meta = source_.describe(source->fd.get());
    if (!meta) return std::unexpected(source_error(meta.error()));
    const std::uint64_t group = job.want.hardlink_group;
    job.want = std::move(*meta);
    job.want.hardlink_group = group;
    job.want.size = source->meta.size;
  }
  return copy_opened(worker, job, *source);
}

Result<Outcome> LocalContent::copy_opened(Worker& worker, FileJob& job,
                                          const SourceTree::OpenedFile& source) {
  const std::uint64_t size = source.meta.size;
  const int from = source.fd.get();
  const bool device = source.meta.type == io::FileType::kBlockDevice;
  const auto check_source = [&]() -> Status {
    if (device) return {};
    auto after = io::stat_fd(from);
    if (!after) return std::unexpected(source_error(after.error()));
    if (!io::unchanged(source.meta, *after)) return fail_with(Code::kMismatch, "source moved");
    return {};
  };
  VF_ASSIGN(const base::UniqueFd basis, targets_.open_basis(job));
  const bool same_size = basis && !job.device && job.old->meta.size == size;
  const bool in_place = targets_.in_place(job);
  // In place, building compares as well; but under --checksum equal content is not even a change.
  const bool compare_first = !in_place || options_.checksum;
  if (job.compare_only || (same_size && compare_first && !job.new_inode)) {
    VF_ASSIGN(const bool equal, equal_content(from, basis.get(), size));
    if (job.compare_only) {
      VF_TRY(check_source());
      return equal ? Outcome::kSame : Outcome::kDiffers;
    }
    bool as_allocated = true;
    if (equal && !job.content_only && io::tells_allocation(basis.get())) {
      VF_ASSIGN(as_allocated, same_allocation(from, basis.get()));
    }
    if (equal && as_allocated) {
      VF_TRY(check_source());
      return Outcome::kSame;
    }
  }
  if (!device && !in_place && size <= kSmallBytes && !is_sparse(source.meta)) {
    VF_ASSIGN(const base::Bytes content, read_small(worker, from, size));
    VF_TRY(check_source());
    VF_TRY(pace(size));
    VF_TRY(targets_.write_small(job, content, false));
    tally_.literal_bytes.fetch_add(size);
    count(job, size);
    return Outcome::kInstalled;
  }
  VF_ASSIGN(Target target, targets_.create(job, targets_.open_interrupted(job), -1));
  const auto build = [&]() -> Status {
    if (in_place || target.resumed) {
      VF_TRY(update_in_place(job, source, target.out.get(), size));
    } else {
      bool cloned = false;
      if (!device && size > 0) {
        VF_ASSIGN(cloned, io::clone_file(from, target.out.get()));
      }
      bool from_old = false;
      if (!cloned && !device && basis && job.old->meta.size > 0) {
        VF_ASSIGN(from_old, io::clone_file(basis.get(), target.out.get()));
        if (from_old && ::ftruncate(target.out.get(), static_cast<off_t>(size)) != 0)
          return fail_sys("truncate " + job.name);
      }
      if (cloned) {
        tally_.matched_bytes.fetch_add(size);
      } else if (device || from_old) {
        VF_TRY(update_in_place(job, source, target.out.get(), size));
      } else {
        VF_TRY(copy_whole(worker, job, from, target, size));
      }
    }
    VF_TRY(check_source());
    return targets_.install(job, target);
  };
  if (auto built = build(); !built) {
    const bool keep = tally_.stopped() || built.error().code == Code::kMismatch;
    if (keep) job.resume = true;
    targets_.discard(job, target, keep);
    return std::unexpected(built.error());
  }
  return Outcome::kInstalled;
}

Status LocalContent::pace(std::uint64_t bytes) {
  if (limiter_ != nullptr) {
    const auto until = base::RateLimiter::Clock::now() + limiter_->take(bytes);
    while (base::RateLimiter::Clock::now() < until && !tally_.stopped()) {
      std::this_thread::sleep_for(std::min<base::RateLimiter::Clock::duration>(
          until - base::RateLimiter::Clock::now(), std::chrono::milliseconds(50)));
    }
  }
  if (tally_.stopped()) return fail_with(Code::kCancelled, "stopped");
  return {};
}

Result<bool> LocalContent::equal_content(int a, int b, std::uint64_t size) {
  std::atomic<bool> differs{false};
  Status compared = for_each_segment(
      workers_.count(), size, 2 * kPiece,
      [&](std::uint64_t begin, std::uint64_t end, std::uint8_t* scratch) -> Status {
        VF_ASSIGN(const bool equal, equal_part(scratch, a, b, {begin, end}));
        if (equal) return {};
        differs.store(true);
        return fail_with(Code::kCancelled, "differs");  // spares the rest
      });
  if (differs.load()) return false;
  VF_TRY(compared);
  return true;
}

Result<bool> LocalContent::equal_part(std::uint8_t* scratch, int a, int b, io::Extent part) {
  std::uint8_t* second = scratch + kPiece;
  for (std::uint64_t at = part.begin; at < part.end;) {
    if (tally_.stopped()) return fail_with(Code::kCancelled, "stopped");
    VF_ASSIGN(const auto data_a, io::next_data(a, at, part.end));
    VF_ASSIGN(const auto data_b, io::next_data(b, at, part.end));
    if (!data_a && !data_b) break;
    // Skip what is a hole in both.
    at = std::min(data_a ? data_a->begin : part.end, data_b ? data_b->begin : part.end) /
         delta::kBlockBytes * delta::kBlockBytes;
    const std::uint64_t end = std::max(data_a ? data_a->end : 0, data_b ? data_b->end : 0);
    for (; at < end; at += kPiece) {
      const std::uint64_t length = std::min(kPiece, part.end - at);
      auto got_a = io::read_full(a, scratch, length, at);
      if (!got_a) return std::unexpected(source_error(got_a.error()));
      VF_ASSIGN(const std::size_t got_b, io::read_full(b, second, length, at));
      if (*got_a < length) return fail_with(Code::kMismatch, "source shrank");
      if (got_b < length || std::memcmp(scratch, second, length) != 0) return false;
    }
  }
  return true;
}

void LocalContent::count(FileJob& job, std::uint64_t bytes) {
  job.counted.fetch_add(bytes);
  tally_.bytes_done.fetch_add(bytes);
}

Result<base::Bytes> LocalContent::read_small(Worker& worker, int from, std::uint64_t size) {
  std::uint8_t* content = worker.scratch(kSmallBytes);
  auto got = io::read_full(from, content, size, 0);
  if (!got) return std::unexpected(source_error(got.error()));
  if (*got < size) return fail_with(Code::kMismatch, "source shrank");
  return base::Bytes(content, size);
}

Status LocalContent::copy_whole(Worker& worker, FileJob& job, int from, const Target& target,
                                std::uint64_t size) {
  Status written;  // the first failure of a direct write
  const Status copied = [&]() -> Status {
    for (std::uint64_t at = 0; at < size && written;) {
      auto data = io::next_data(from, at, size);
      if (!data) return std::unexpected(source_error(data.error()));
      tally_.zero_bytes.fetch_add((*data ? (*data)->begin : size) - at);
      if (!*data) break;
      VF_ASSIGN(const io::Extent rest, copy_direct(worker, job, from, target, **data, written));
      VF_TRY(copy_in_kernel(job, from, target.out.get(), rest));
      at = (*data)->end;
    }
    return {};
  }();
  worker.queue().drain();  // the callbacks refer to this frame
  VF_TRY(copied);
  return written;
}

Status LocalContent::copy_in_kernel(FileJob& job, int from, int to, io::Extent part) {
  // In steps, so that a stop is noticed.
  const std::uint64_t step = limiter_ == nullptr ? 64u << 20 : limiter_->slice();
  for (std::uint64_t begin = part.begin; begin < part.end; begin += step) {
    const std::uint64_t length = std::min(step, part.end - begin);
    VF_TRY(pace(length));
    Status copied = io::copy_range(from, begin, to, begin, length);
    if (!copied && copied.error().code == Code::kSourceRead && copied.error().os_errno == 0) {
      return fail_with(Code::kMismatch, "source shrank");
    }
    VF_TRY(copied);
    tally_.literal_bytes.fetch_add(length);
    count(job, length);
  }
  return {};
}

Result<base::Buffer> LocalContent::piece_buffer(Worker& worker) {
  for (;;) {
    base::Buffer buffer = pool_.try_acquire();
    if (buffer.data() != nullptr) return buffer;
    // Others give theirs back by themselves; our own come back only here.
    if (worker.queue().in_flight() == 0) return pool_.acquire();
    worker.queue().wait(1);
  }
}

Result<io::Extent> LocalContent::copy_direct(Worker& worker, FileJob& job, int from,
                                             const Target& target, io::Extent part,
                                             Status& written) {
  if (limiter_ != nullptr || part.begin % delta::kBlockBytes != 0) return part;
  const std::uint64_t piece = pool_.slot_bytes();
  while (part.begin < part.end && targets_.writes_directly(target) && written) {
    const std::uint64_t length =
        std::min(piece, part.end - part.begin) / delta::kBlockBytes * delta::kBlockBytes;
    if (length == 0) break;
    VF_TRY(pace(length));
    VF_ASSIGN(base::Buffer content, piece_buffer(worker));
    auto got = io::read_full(from, content.data(), length, part.begin);
    if (!got) return std::unexpected(source_error(got.error()));
    if (*got < length) return fail_with(Code::kMismatch, "source shrank");
    targets_.write_direct(worker, target, part.begin, std::move(content), length,
                          [&written](Status done) {
                            if (!done && written) written = std::move(done);
                          });
    tally_.literal_bytes.fetch_add(length);
    count(job, length);
    part.begin += length;
  }
  return part;
}

Status LocalContent::clear_range(std::uint8_t* scratch, int to, std::uint64_t begin,
                                 std::uint64_t end) {
  if (begin >= end) return {};
  tally_.zero_bytes.fetch_add(end - begin);
  VF_ASSIGN(const io::Metadata meta, io::stat_fd(to));
  if (meta.type != io::FileType::kBlockDevice) return make_hole(to, begin, end);
  // Zero only what is not: a write, or even a discard, would wear or unshare what is right already.
  for (std::uint64_t at = begin; at < end; at += kPiece) {
    if (tally_.stopped()) return fail_with(Code::kCancelled, "stopped");
    const std::uint64_t length = std::min(kPiece, end - at);
    VF_ASSIGN(const std::size_t got, io::read_full(to, scratch, length, at));
    if (!delta::is_zero({scratch, got}))
      VF_TRY(io::zero_range(to, at, length, io::ZeroMode::kHole));
  }
  return {};
}

Status LocalContent::update_range(std::uint8_t* source, int from, int to, std::uint64_t begin,
                                  std::uint64_t length, bool device) {
  std::uint8_t* there = source + kPiece;
  auto got = io::read_full(from, source, length, begin);
  if (!got) return std::unexpected(source_error(got.error()));
  if (*got < length) return fail_with(Code::kMismatch, "source shrank");
  VF_ASSIGN(const std::size_t old, io::read_full(to, there, length, begin));
  // Zeros that are allocated at the source are not the same as a hole.
  bool hole = false;
  if (!device && old > 0) {
    VF_ASSIGN(const auto data, io::next_allocated(to, begin, begin + length));
    hole = !data || data->begin > begin || data->end < begin + length;
  }
  if (old == length && !hole && std::memcmp(source, there, length) == 0) {
    tally_.matched_bytes.fetch_add(length);
    return {};
  }
  std::uint64_t from_block = length;  // start of the run to write, or length: none
  const auto flush = [&](std::uint64_t end) -> Status {
    if (from_block >= end) return {};
    Status written = io::write_full(to, source + from_block, end - from_block, begin + from_block);
    tally_.literal_bytes.fetch_add(end - from_block);
    from_block = length;
    return written;
  };
  for (std::uint64_t at = 0; at < length; at += delta::kBlockBytes) {
    const std::uint64_t step = std::min(delta::kBlockBytes, length - at);
    const bool same = !hole && at + step <= old && std::memcmp(source + at, there + at, step) == 0;
    const bool zero = !same && device && delta::is_zero({source + at, step});
    if (same || zero) {
      VF_TRY(flush(at));
      (same ? tally_.matched_bytes : tally_.zero_bytes).fetch_add(step);
      if (zero) VF_TRY(io::zero_range(to, begin + at, step, io::ZeroMode::kHole));
    } else if (from_block == length) {
      from_block = at;
    }
  }
  return flush(length);
}

Status LocalContent::update_in_place(FileJob& job, const SourceTree::OpenedFile& source, int to,
                                     std::uint64_t size) {
  return for_each_segment(workers_.count(), size, 2 * kPiece,
                          [&](std::uint64_t begin, std::uint64_t end, std::uint8_t* scratch) {
                            return update_part(scratch, job, source, to, {begin, end});
                          });
}

Status LocalContent::update_part(std::uint8_t* scratch, FileJob& job,
                                 const SourceTree::OpenedFile& source, int to, io::Extent part) {
  const int from = source.fd.get();
  // Zeros of a device carry no wish to be allocated at the other end.
  const bool device = source.meta.type == io::FileType::kBlockDevice;
  for (std::uint64_t at = part.begin; at < part.end;) {
    auto data = io::next_data(from, at, part.end);
    if (!data) return std::unexpected(source_error(data.error()));
    const std::uint64_t begin = *data ? (*data)->begin : part.end;
    VF_TRY(clear_range(scratch, to, at, begin));
    if (!*data) break;
    for (at = begin; at < (*data)->end; at += kPiece) {
      const std::uint64_t length = std::min(kPiece, (*data)->end - at);
      VF_TRY(pace(length));
      VF_TRY(update_range(scratch, from, to, at, length, device));
      count(job, length);
    }
    at = (*data)->end;
  }
  return {};
}

}  // namespace volferry::session
