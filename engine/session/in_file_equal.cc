// SPDX-License-Identifier: Apache-2.0
// Parts of a file whose content is there already: kept or copied from the basis, and made to take
// space just where the source does.
//
// While there is no target, parts that are as wanted are put aside: if nothing else of the file
// differs, no target is ever made. Others make one, because a hole in place of written zeros is a
// change like any other.
#include <algorithm>
#include <vector>

#include "engine/delta/geometry.h"
#include "engine/delta/zero.h"
#include "engine/io/file.h"
#include "engine/session/allocation.h"
#include "engine/session/in_file.h"

namespace volferry::session {

namespace {
constexpr std::uint64_t kRange = delta::kRangeBytes;
}

Status InFile::each_kept(std::uint64_t begin, std::uint64_t end,
                         const std::function<Status(std::uint64_t, std::uint64_t, bool)>& work) {
  const auto is_kept = [&](std::uint64_t range) {
    const std::lock_guard lock(mutex_);
    return kept(range);
  };
  for (std::uint64_t at = begin; at < end;) {
    const bool keeps = is_kept(at / kRange);
    std::uint64_t stop = (at / kRange + 1) * kRange;
    while (stop < end && is_kept(stop / kRange) == keeps) stop += kRange;
    stop = std::min(stop, end);
    VF_TRY(work(at, stop, keeps));
    at = stop;
  }
  return {};
}

Result<bool> InFile::allocated_as_wanted(std::uint64_t begin, std::uint64_t end, bool hole) {
  if (!allocation_) return true;
  const auto source_of = [&](std::uint64_t range) {
    const std::lock_guard lock(mutex_);
    return read_fd(range);
  };
  for (std::uint64_t at = begin; at < end;) {
    const int fd = source_of(at / kRange);
    std::uint64_t stop = (at / kRange + 1) * kRange;
    while (stop < end && source_of(stop / kRange) == fd) stop += kRange;
    stop = std::min(stop, end);
    if (fd < 0) return true;
    VF_ASSIGN(const AllocationMap map, AllocationMap::load(fd, at, stop));
    if (!map.as_source(at, stop, hole)) return false;
    at = stop;
  }
  return true;
}

Result<bool> InFile::put_aside(std::uint64_t begin, std::uint64_t end, bool as_wanted, bool hole) {
  const std::lock_guard lock(mutex_);
  if (!as_wanted) changed_ = true;
  if (!as_wanted || have_target_) {
    VF_TRY(ensure_target());
    return false;
  }
  // A hole needs nothing: a new file begins as one.
  if (hole) return true;
  if (!deferred_.empty() && deferred_.back().second == begin) {
    deferred_.back().second = end;
  } else {
    deferred_.emplace_back(begin, end);
  }
  return true;
}

Status InFile::apply_equal(std::uint64_t begin, std::uint64_t end, bool hole) {
  if (job_->device) return {};  // holds it, and has no holes
  bool made = false;
  {
    const std::lock_guard lock(mutex_);
    made = have_target_;
  }
  if (!made) {
    VF_ASSIGN(const bool as_wanted, allocated_as_wanted(begin, end, hole));
    VF_ASSIGN(const bool aside, put_aside(begin, end, as_wanted, hole));
    if (aside) return {};
  }
  return hole ? punch_kept(begin, end) : copy_basis(begin, end, true);
}

Status InFile::punch_kept(std::uint64_t begin, std::uint64_t end) {
  if (!allocation_) return {};
  return each_kept(begin, end, [&](std::uint64_t from, std::uint64_t to, bool keeps) -> Status {
    // An interrupted temporary may have space there that was never written.
    if (!keeps && !target_.resumed) return {};
    return make_hole(target_.out.get(), from, to);
  });
}

Status InFile::copy_basis(std::uint64_t begin, std::uint64_t end, bool fill) {
  const int out = target_.out.get();
  return each_kept(begin, end, [&](std::uint64_t from, std::uint64_t to, bool keeps) -> Status {
    if (!keeps) {
      for (std::uint64_t at = from; at < to;) {
        VF_ASSIGN(const auto data, io::next_data(basis_.get(), at, to));
        if (!data) break;
        VF_TRY(
            io::copy_range(basis_.get(), data->begin, out, data->begin, data->end - data->begin));
        at = data->end;
      }
    }
    // A clone lacks what was never written: XFS shares written extents only.
    if (!allocation_ || (keeps && !fill && !target_.cloned)) return {};
    // The rest are zeros that take space.
    if (fill) return fill_holes(out, from, to);
    VF_ASSIGN(const std::vector<io::Extent> extents, io::allocated(basis_.get(), from, to));
    for (const io::Extent& extent : extents) VF_TRY(fill_holes(out, extent.begin, extent.end));
    return {};
  });
}

namespace {

Result<bool> reads_zeros(int fd, std::uint64_t begin, std::uint64_t end) {
  base::Buffer content = base::Buffer::heap(end - begin);
  VF_ASSIGN(const std::size_t got, io::read_full(fd, content.data(), end - begin, begin));
  return delta::is_zero({content.data(), got});
}

}  // namespace

Status InFile::apply_equal_range(const wire::RangeData& data) {
  const std::uint64_t offset = data.range * kRange;
  const std::uint64_t end = std::min(offset + kRange, size_);
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    fd = read_fd(data.range);
  }
  const bool fits =
      segmented_ && fd >= 0 && std::ranges::all_of(data.ops, [](const wire::RangeOp& op) {
        return op.kind == wire::OpKind::kSame || op.kind == wire::OpKind::kHole;
      });
  if (!fits) return fail_with(Code::kProtocol, "an equal range that does not fit the file");
  AllocationMap map;
  if (!job_->device) {
    VF_ASSIGN(map, AllocationMap::load(fd, offset, end));
  }
  bool as_wanted = true;
  std::uint64_t at = offset;
  for (const wire::RangeOp& op : data.ops) {
    const bool hole = op.kind == wire::OpKind::kHole;
    if (hole && map.any(at, at + op.length)) {
      // Content is not given up because a peer says that there is none.
      VF_ASSIGN(const bool zeros, reads_zeros(fd, at, at + op.length));
      if (!zeros) return ask_again(data.range);
    }
    if (allocation_ && !map.as_source(at, at + op.length, hole)) as_wanted = false;
    at += op.length;
  }
  for (const wire::RangeOp& op : data.ops) {
    const bool hole = op.kind == wire::OpKind::kHole;
    (hole ? parts_.tally.zero_bytes : parts_.tally.matched_bytes).fetch_add(op.length);
  }
  bool done = job_->device;
  if (!done) {
    VF_ASSIGN(done, put_aside(offset, end, as_wanted, false));
  }
  at = offset;
  for (const wire::RangeOp& op : data.ops) {
    if (done) break;
    const bool hole = op.kind == wire::OpKind::kHole;
    VF_TRY(hole ? punch_kept(at, at + op.length) : copy_basis(at, at + op.length, true));
    at += op.length;
  }
  settle(data.range, 1);
  return {};
}

Status InFile::apply_zeros(std::uint64_t first, std::uint64_t last, wire::OpKind kind) {
  {
    const std::lock_guard lock(mutex_);
    changed_ = true;
    VF_TRY(ensure_target());
  }
  const bool allocated = kind == wire::OpKind::kZero;
  const std::uint64_t end = std::min(last * kRange, size_);
  return each_kept(
      first * kRange, end, [&](std::uint64_t from, std::uint64_t to, bool keeps) -> Status {
        if (!allocated && !keeps && !target_.resumed) return {};
        return io::zero_range(target_.out.get(), from, to - from,
                              allocated ? io::ZeroMode::kAllocated : io::ZeroMode::kHole);
      });
}

}  // namespace volferry::session
