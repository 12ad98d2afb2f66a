// SPDX-License-Identifier: Apache-2.0
#include "engine/session/in_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/delta/geometry.h"
#include "engine/delta/rolling.h"
#include "engine/delta/zero.h"
#include "engine/io/file.h"
#include "engine/io/reader.h"
#include "engine/session/allocation.h"
#include "engine/session/convert.h"
#include "engine/session/internal/in_file_busy.h"
#include "engine/session/sizes.h"

namespace volferry::session {

namespace {
constexpr std::uint64_t kRange = delta::kRangeBytes;
}

InFile::InFile(const InParts& parts, std::uint32_t req, FileJobPtr job,
               std::function<void(const End&)> ended, std::function<void()> segment_done)
    : parts_(parts),
      req_(req),
      job_(std::move(job)),
      ended_(std::move(ended)),
      segment_done_(std::move(segment_done)),
      size_(job_->want.size),
      ranges_(delta::range_count(job_->want.size)) {}

Result<wire::FileRequest> InFile::prepare() {
  if (size_ > kMaxFileBytes)
    return fail_sys("a file of " + std::to_string(size_) + " bytes", EFBIG);
  VF_ASSIGN(basis_, parts_.targets.open_basis(*job_));
  if (basis_) {
    VF_ASSIGN(basis_size_, io::data_size(basis_.get()));
  }
  if (!job_->compare_only) interrupted_ = parts_.targets.open_interrupted(*job_);
  interrupted_fd_ = interrupted_.get();
  const int known = basis_ ? basis_.get() : interrupted_fd_;
  allocation_ =
      !job_->content_only && !job_->compare_only && known >= 0 && io::tells_allocation(known);
  answered_.resize(ranges_);
  left_ = ranges_;
  const bool worth = basis_size_ >= kDeltaFileBytes || (basis_ && job_->device);
  segmented_ = ranges_ > 0 && (job_->compare_only || worth || interrupted_);
  if (segmented_) {
    from_temp_.resize(ranges_);
    zero_sig_.resize(ranges_);
    segment_left_.resize((ranges_ + wire::kRangesPerSegment - 1) / wire::kRangesPerSegment);
  }
  wire::FileRequest request;
  request.req = req_;
  request.dir = job_->dir_number;
  request.index = job_->index;
  request.kind = segmented_ ? wire::RequestKind::kSegments : wire::RequestKind::kWhole;
  request.size = size_;
  request.basis_size = interrupted_ ? std::max(basis_size_, size_) : basis_size_;
  request.mtime_s = job_->want.mtime_s;
  request.mtime_ns = job_->want.mtime_ns;
  if (job_->compare_only) request.flags |= wire::kRequestCompareOnly;
  const bool file_to_file = !job_->content_only && basis_ && basis_size_ >= kDeltaFileBytes;
  if (file_to_file && !job_->compare_only) {
    request.flags |= wire::kRequestRolling;
    // Without the rolling search nothing is copied from elsewhere.
    ordered_ = parts_.targets.in_place(*job_);
    if (ordered_) request.flags |= wire::kRequestOrdered;
  }
  return request;
}

bool InFile::kept(std::uint64_t range) const {
  return target_.holds_basis() || (range < from_temp_.size() && from_temp_[range]);
}

int InFile::read_fd(std::uint64_t range) const {
  if (range < from_temp_.size() && from_temp_[range]) return interrupted_fd_;
  return basis_.get();
}

// ---- building

Status InFile::ensure_target() {
  // mutex_ is held: one thread creates, the others wait.
  if (have_target_) return {};
  VF_ASSIGN(target_, parts_.targets.create(*job_, std::move(interrupted_), basis_.get()));
  have_target_ = true;
  return {};
}

bool InFile::claim(std::uint64_t first, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (first > ranges_ || count > ranges_ - first) return false;
  for (std::uint64_t range = first; range < first + count; ++range) {
    if (answered_[range]) return false;
  }
  std::fill_n(answered_.begin() + static_cast<std::ptrdiff_t>(first), count, true);
  return true;
}

void InFile::settle(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t bytes = std::min((first + count) * kRange, size_) - first * kRange;
  job_->counted.fetch_add(bytes);
  parts_.tally.bytes_done.fetch_add(bytes);
  unsigned segments = 0;
  {
    const std::lock_guard lock(mutex_);
    left_ -= count;
    for (std::uint64_t range = first; segmented_ && range < first + count;) {
      const std::uint64_t segment = range / wire::kRangesPerSegment;
      const std::uint64_t stop = std::min(first + count, (segment + 1) * wire::kRangesPerSegment);
      std::uint32_t& open = segment_left_[segment];
      const auto closed = static_cast<std::uint32_t>(std::min<std::uint64_t>(open, stop - range));
      open -= closed;
      if (open == 0 && closed > 0) ++segments;
      range = stop;
    }
  }
  for (; segments > 0; --segments) segment_done_();
}

void InFile::on_range(Worker& worker, const wire::RangeData& data, base::Buffer body) {
  const Busy busy(*this);
  if (busy.over()) return;
  if (auto applied = apply_range(worker, data, std::move(body)); !applied) fail(applied.error());
}

Status InFile::apply_range(Worker& worker, const wire::RangeData& data, base::Buffer body) {
  const std::uint64_t length = delta::range_length(data.range, size_);
  std::uint64_t total = 0;
  std::uint64_t literal = 0;
  for (const wire::RangeOp& op : data.ops) {
    total += op.length;
    if (op.kind == wire::OpKind::kLiteral) literal += op.length;
  }
  if (length == 0 || total != length || literal != data.raw_bytes || job_->compare_only ||
      !claim(data.range, 1)) {
    return fail_with(Code::kProtocol, "range data that does not fit the file");
  }
  if (data.digest.empty()) return apply_equal_range(data);
  if (data.compressed) {
    VF_ASSIGN(body, parts_.coder.decompress(body, data.raw_bytes));
  }
  if (body.size() != data.raw_bytes)
    return fail_with(Code::kProtocol, "range data of another length than announced");
  VF_ASSIGN(base::Buffer content, build(data, std::move(body), length));
  if (!equal(data.digest, parts_.hash.hash_range(content.bytes(), false).digest))
    return ask_again(data.range);
  parts_.tally.literal_bytes.fetch_add(literal);
  for (const wire::RangeOp& op : data.ops) {
    if (op.kind == wire::OpKind::kCopy || op.kind == wire::OpKind::kSame)
      parts_.tally.matched_bytes.fetch_add(op.length);
    if (op.kind == wire::OpKind::kHole || op.kind == wire::OpKind::kZero)
      parts_.tally.zero_bytes.fetch_add(op.length);
  }
  {
    const std::lock_guard lock(mutex_);
    changed_ = true;
    VF_TRY(ensure_target());
  }
  return write_range(worker, data, std::move(content));
}

Status InFile::ask_again(std::uint64_t range) {
  {
    const std::lock_guard lock(mutex_);
    if (!retried_.insert(range).second) {
      return fail_with(Code::kMismatch,
                       "content of range " + std::to_string(range) + " arrived wrong twice");
    }
    answered_[range] = false;
  }
  return parts_.channel.send(wire::make_frame(wire::RangeRetry{req_, range}));
}

Result<base::Buffer> InFile::build(const wire::RangeData& data, base::Buffer body,
                                   std::uint64_t length) {
  if (data.ops.size() == 1 && data.ops[0].kind == wire::OpKind::kLiteral) return body;
  base::Buffer content = base::Buffer::heap(length);
  content.set_size(length);
  int same_fd = -1;
  {
    const std::lock_guard lock(mutex_);
    same_fd = read_fd(data.range);
  }
  const int copy_fd = basis_ ? basis_.get() : interrupted_fd_;
  std::uint64_t at = 0;
  std::uint64_t taken = 0;
  for (const wire::RangeOp& op : data.ops) {
    std::uint8_t* out = content.data() + at;
    const bool same = op.kind == wire::OpKind::kSame;
    if (op.kind == wire::OpKind::kLiteral) {
      std::memcpy(out, body.data() + taken, op.length);
      taken += op.length;
    } else if (same || op.kind == wire::OpKind::kCopy) {
      const int fd = same ? same_fd : copy_fd;
      if (fd < 0) return fail_with(Code::kProtocol, "a copy without basis");
      VF_ASSIGN(
          const std::size_t got,
          io::read_full(fd, out, op.length, same ? data.range * kRange + at : op.basis_offset));
      // A basis that is too short makes wrong content, which the digest then tells.
      if (got < op.length) std::memset(out + got, 0, op.length - got);
    } else {
      std::memset(out, 0, op.length);
    }
    at += op.length;
  }
  return content;
}

Status InFile::write_range(Worker& worker, const wire::RangeData& data, base::Buffer content) {
  const std::uint64_t offset = data.range * kRange;
  bool keeps = false;
  bool fresh = false;
  {
    const std::lock_guard lock(mutex_);
    keeps = kept(data.range);
    fresh = !keeps;
  }
  const int fd = target_.out.get();
  const bool whole = data.ops.size() == 1 && data.ops[0].kind == wire::OpKind::kLiteral;
  const bool aligned = content.size() == kRange && content.slot() >= 0;
  if (whole && aligned && parts_.targets.writes_directly(target_)) {
    {
      const std::lock_guard lock(mutex_);
      ++busy_;
    }
    parts_.targets.write_direct(worker, target_, offset, std::move(content), kRange,
                                [self = shared_from_this(), range = data.range](Status written) {
                                  if (written) {
                                    self->settle(range, 1);
                                  } else {
                                    self->fail(written.error());
                                  }
                                  self->leave();
                                });
    return {};
  }
  std::uint64_t at = 0;
  std::uint64_t write_begin = 0;
  std::uint64_t write_end = 0;
  const auto flush = [&]() -> Status {
    if (write_end == write_begin) return {};
    Status written = io::write_full(fd, content.data() + write_begin, write_end - write_begin,
                                    offset + write_begin);
    write_begin = write_end;
    return written;
  };
  for (const wire::RangeOp& op : data.ops) {
    const std::uint64_t end = at + op.length;
    const bool write = op.kind == wire::OpKind::kLiteral || op.kind == wire::OpKind::kCopy ||
                       (op.kind == wire::OpKind::kSame && !keeps);
    if (write) {
      if (write_end != at) {
        VF_TRY(flush());
        write_begin = at;
      }
      write_end = end;
    } else {
      VF_TRY(flush());
      if (op.kind == wire::OpKind::kZero) {
        VF_TRY(io::zero_range(fd, offset + at, op.length, io::ZeroMode::kAllocated));
      } else if (op.kind == wire::OpKind::kHole && !fresh) {
        VF_TRY(allocation_ ? make_hole(fd, offset + at, offset + end)
                           : io::zero_range(fd, offset + at, op.length, io::ZeroMode::kHole));
      } else if (op.kind == wire::OpKind::kSame && allocation_) {
        VF_TRY(fill_holes(fd, offset + at, offset + end));
      }
    }
    at = end;
  }
  VF_TRY(flush());
  settle(data.range, 1);
  return {};
}

void InFile::on_run(const wire::RangeRun& run) {
  const Busy busy(*this);
  if (busy.over()) return;
  if (auto applied = apply_run(run); !applied) fail(applied.error());
}

Status InFile::apply_run(const wire::RangeRun& run) {
  if (run.count == 0 || !claim(run.first, run.count)) {
    return fail_with(Code::kProtocol, "a run of ranges that does not fit the file");
  }
  const std::uint64_t begin = run.first * kRange;
  const std::uint64_t end = std::min((run.first + run.count) * kRange, size_);
  if (job_->compare_only) {
    settle(run.first, run.count);
    return {};
  }
  const bool same = run.kind == wire::OpKind::kSame;
  if (same && !segmented_) return fail_with(Code::kProtocol, "equal ranges without a basis");
  (same ? parts_.tally.matched_bytes : parts_.tally.zero_bytes).fetch_add(end - begin);
  const auto known = [&](std::uint64_t r) {
    return same || (r < zero_sig_.size() && zero_sig_[r]);
  };
  for (std::uint64_t range = run.first; range < run.first + run.count;) {
    // Neighbours that need the same treatment are done in one call.
    std::uint64_t stop = range;
    bool equal = false;
    {
      const std::lock_guard lock(mutex_);
      equal = known(range);
      while (stop < run.first + run.count && known(stop) == equal) ++stop;
    }
    const std::uint64_t limit = std::min(stop * kRange, size_);
    VF_TRY(equal ? apply_equal(range * kRange, limit, run.kind == wire::OpKind::kHole)
                 : apply_zeros(range, stop, run.kind));
    range = stop;
  }
  settle(run.first, run.count);
  return {};
}

// ---- ending

void InFile::on_end(wire::FileEnd end) {
  const Busy busy(*this);
  if (busy.over()) return;
  const std::string path = job_->path();
  const std::lock_guard lock(mutex_);
  source_end_ = std::move(end);
  const wire::FileEnd& told = *source_end_;
  switch (told.result) {
    case wire::FileResult::kOk:
    case wire::FileResult::kSame:
      break;
    case wire::FileResult::kDiffers:
      end_.outcome = Outcome::kDiffers;
      over_ = true;
      break;
    case wire::FileResult::kChanged:
      end_.again = told.has_meta;
      if (told.has_meta) end_.meta = told.meta;
      if (!told.has_meta) parts_.tally.item_changed(path, "kept changing while it was read");
      over_ = true;
      break;
    case wire::FileResult::kVanished:
      parts_.tally.item_changed(path, "vanished before it could be read");
      over_ = true;
      break;
    case wire::FileResult::kError:
      parts_.tally.source_error(path, told.os_errno, told.text);
      over_ = true;
      break;
  }
}

Status InFile::finish() {
  // Nothing else runs on the file now.
  if (source_end_->has_meta) {
    wire::EntryMeta meta = source_end_->meta;
    if (meta.size != size_ && !job_->content_only)
      return fail_with(Code::kProtocol, "a file's size changed at its end");
    meta.hardlink_group = job_->want.hardlink_group;
    meta.size = size_;
    if (!job_->content_only) job_->want = std::move(meta);
  }
  if (job_->compare_only) {
    end_.outcome = Outcome::kSame;
    return {};
  }
  const bool same_size = job_->device || (job_->old && job_->old->meta.size == size_);
  if (!changed_ && !have_target_ && segmented_ && same_size && !job_->new_inode &&
      interrupted_fd_ < 0) {
    end_.outcome = Outcome::kSame;
    // job_done counts the content of an equal file.
    parts_.tally.matched_bytes.fetch_sub(std::min(parts_.tally.matched_bytes.load(), size_));
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    VF_TRY(ensure_target());
  }
  for (const auto& [begin, end] : deferred_) VF_TRY(copy_basis(begin, end, false));
  VF_TRY(parts_.targets.install(*job_, target_));
  end_.outcome = Outcome::kInstalled;
  return {};
}

void InFile::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    over_ = true;
    end_ = {};
  }
  if (error.code == Code::kProtocol) {
    parts_.channel.abort(error);
    parts_.tally.fail(error);
  } else if (error.code == Code::kMismatch) {
    parts_.tally.item_error(job_->path(), error);
  } else if (error.code != Code::kConnectionLost && error.code != Code::kCancelled) {
    parts_.tally.destination_error(job_->path(), error);
  }
}

void InFile::abandon() {
  const Busy busy(*this);
  const std::lock_guard lock(mutex_);
  if (!over_) end_ = {};
  over_ = true;
}

// The last operation to leave ends the file, if it is over or complete.
void InFile::leave() {
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    if (--busy_ > 0 || reported_) return;
    complete = !over_ && left_ == 0 && source_end_.has_value();
    if (!over_ && !complete) return;
    reported_ = true;
    ++busy_;  // for finish, so that nothing else ends it
  }
  if (complete) {
    if (auto finished = finish(); !finished) fail(finished.error());
  }
  unsigned open_segments = 0;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    for (const std::uint32_t left : segment_left_) open_segments += left > 0 ? 1 : 0;
    std::fill(segment_left_.begin(), segment_left_.end(), 0);
    if (have_target_) {
      // What has arrived serves the next try or run, unless this failed for a reason that stays.
      const bool keep = end_.again || parts_.tally.stopped();
      if (end_.outcome != Outcome::kInstalled) parts_.targets.discard(*job_, target_, keep);
    }
  }
  for (; open_segments > 0; --open_segments) segment_done_();
  (void)parts_.channel.send(wire::make_frame(wire::FileCancel{req_}));
  ended_(end_);
  const std::lock_guard lock(mutex_);
  --busy_;
}

}  // namespace volferry::session
