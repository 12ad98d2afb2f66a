// SPDX-License-Identifier: Apache-2.0
// The comparison of a large file with the receiver's basis: equal ranges, equal blocks, then blocks
// anywhere.
#include <algorithm>

#include "engine/delta/aligned.h"
#include "engine/delta/geometry.h"
#include "engine/delta/zero.h"
#include "engine/io/reader.h"
#include "engine/session/convert.h"
#include "engine/session/internal/out_file_runs.h"
#include "engine/session/out_file.h"
#include "engine/session/sizes.h"

namespace volferry::session {

namespace {
constexpr std::uint64_t kRange = delta::kRangeBytes;
}

void OutFileWork::compare_job(Worker& worker, const wire::SegmentRequest& request) {
  if (!ensure_open()) return;
  const std::uint64_t first = static_cast<std::uint64_t>(request.segment) * wire::kRangesPerSegment;
  const std::uint64_t last = first + request.ranges.size();
  if (last > file_->ranges) {
    return sender_.protocol_error({Code::kProtocol, 0, "segment request past the end of the file"});
  }
  const bool device = file_->before.type == io::FileType::kBlockDevice;
  const auto compare_all = [&]() -> Status {
    VF_ASSIGN(const SegmentMap map, map_segment(first * kRange, last * kRange));
    Runs runs(*this);
    wire::FineRequest fine{file_->request.req, {}};
    const auto ask_fine = [&]() -> Status {
      if (fine.ranges.empty()) return {};
      Status sent = parts_.channel.send(wire::make_frame(fine));
      fine.ranges.clear();
      return sent;
    };
    const int fd = file_->direct_fd ? file_->direct_fd.get() : file_->fd.get();
    io::ReadAhead reader(worker.queue(), parts_.pool, fd, 4);
    queue_reads(reader, map, first, last);
    for (std::uint64_t range = first; range < last; ++range) {
      if (parts_.tally.stopped() || file_->over.load())
        return fail_with(Code::kCancelled, "stopped");
      const wire::RangeSig& theirs = request.ranges[range - first];
      const std::uint64_t length = delta::range_length(range, file_->size);
      base::Buffer content;
      const bool hole = map.all_hole(range * kRange, range * kRange + length);
      bool zero = hole;
      wire::OpKind zero_kind = wire::OpKind::kHole;
      if (!zero) {
        VF_ASSIGN(std::optional<io::ReadPiece> piece, reader.next());
        if (!piece || piece->data.size() < length) {
          end(wire::FileResult::kChanged, nullptr);
          return {};
        }
        content = std::move(piece->data);
        zero = delta::is_zero(content.bytes());
        if (zero && !device) zero_kind = wire::OpKind::kZero;
      }
      const bool both_digests = !zero && theirs.kind == wire::RangeSigKind::kDigest;
      const bool same =
          (zero && theirs.kind == wire::RangeSigKind::kZero) ||
          (both_digests &&
           equal(theirs.digest, parts_.hash.hash_range(content.bytes(), false).digest));
      if (!same && file_->compare_only()) {
        end(wire::FileResult::kDiffers, nullptr);
        return {};
      }
      const bool partly_hole =
          !hole && !device && !map.all_data(range * kRange, range * kRange + length);
      if (partly_hole && (zero || same) && !file_->compare_only()) {
        VF_TRY(runs.flush());
        VF_TRY(same ? send_equal(range, map) : send_plain(range, std::move(content), map));
        answered(1);
        continue;
      }
      if (zero || same) {
        VF_TRY(runs.add(zero ? zero_kind : wire::OpKind::kSame, range));
        continue;
      }
      VF_TRY(runs.flush());
      if (!both_digests) {
        // Data past the end of the basis may have come from inside it.
        if (theirs.kind == wire::RangeSigKind::kNone && put_aside(range)) continue;
        VF_TRY(send_plain(range, std::move(content), map));
        answered(1);
        continue;
      }
      bool give_up = false;
      {
        const std::lock_guard lock(file_->decide_mutex);
        give_up =
            file_->rolling_allowed() && file_->fine_hits == 0 && file_->fine_misses >= kFineGiveUp;
      }
      if (give_up && put_aside(range)) continue;
      fine.ranges.push_back(range);
      if (fine.ranges.size() >= 4) VF_TRY(ask_fine());
    }
    VF_TRY(ask_fine());
    return runs.flush();
  };
  if (auto compared = compare_all(); !compared) failed(compared.error());
}

bool OutFileWork::put_aside(std::uint64_t range) {
  if (!file_->rolling_allowed()) return false;
  {
    const std::lock_guard lock(file_->decide_mutex);
    file_->unmatched.insert(range);
  }
  decided(1);
  return true;
}

void OutFileWork::fine_job(Worker& /*worker*/, const wire::FineHashes& hashes) {
  if (!ensure_open()) return;
  const auto work = [&]() -> Status {
    if (hashes.range >= file_->ranges)
      return fail_with(Code::kProtocol, "block hashes past the end of the file");
    VF_ASSIGN(base::Buffer content, read_range(hashes.range));
    const std::uint64_t length = delta::range_length(hashes.range, file_->size);
    if (content.size() < length) {
      end(wire::FileResult::kChanged, nullptr);
      return {};
    }
    const delta::RangeHash mine = parts_.hash.hash_range(content.bytes(), true);
    const std::uint64_t basis_bytes = delta::range_length(hashes.range, file_->request.basis_size);
    std::vector<wire::RangeOp> ops =
        to_wire(delta::compare_blocks(content.bytes(), mine.blocks, hashes.blocks, basis_bytes));
    const bool hit = std::ranges::any_of(
        ops, [](const wire::RangeOp& op) { return op.kind == wire::OpKind::kSame; });
    std::uint64_t literal = 0;
    for (const wire::RangeOp& op : ops)
      literal += op.kind == wire::OpKind::kLiteral ? op.length : 0;
    {
      const std::lock_guard lock(file_->decide_mutex);
      ++(hit ? file_->fine_hits : file_->fine_misses);
    }
    // Little at its place, as among shuffled blocks: the rest may stand elsewhere in the basis.
    if (literal > length / 4 * 3 && put_aside(hashes.range)) return {};
    const std::uint64_t offset = hashes.range * kRange;
    VF_ASSIGN(const SegmentMap map, map_segment(offset, offset + length));
    mark_holes(ops, offset, map);
    VF_TRY(send_range(hashes.range, std::move(content), std::move(ops), mine.digest));
    answered(1);
    return {};
  };
  if (auto done = work(); !done) {
    if (done.error().code == Code::kProtocol) return sender_.protocol_error(done.error());
    failed(done.error());
  }
}

void OutFileWork::decided(std::uint64_t count) {
  {
    const std::lock_guard lock(file_->decide_mutex);
    // Answers given by the rolling search itself concern ranges that were decided before.
    if (file_->undecided == 0) return;
    file_->undecided -= std::min(file_->undecided, count);
    if (file_->undecided > 0 || file_->unmatched.empty()) return;
  }
  begin_rolling();
}

void OutFileWork::begin_rolling() {
  wire::RollingRequest request;
  request.req = file_->request.req;
  {
    const std::lock_guard lock(file_->decide_mutex);
    const std::uint64_t window = *file_->unmatched.begin() * kRange / kRollingWindow;
    const std::uint64_t basis = file_->request.basis_size;
    const std::uint32_t block = delta::rolling_block_bytes(basis);
    const std::uint64_t begin = window * kRollingWindow;
    request.block_bytes = block;
    request.offset =
        std::min(begin < kRollingMargin ? 0 : begin - kRollingMargin, basis / block * block);
    request.length = std::min(begin + kRollingWindow + kRollingMargin, basis) - request.offset;
    file_->signature = {request.offset, block, {}, {}};
    file_->signature_blocks = request.length / block;
    file_->awaiting_signature = true;
  }
  if (auto sent = parts_.channel.send(wire::make_frame(request)); !sent) failed(sent.error());
}

Result<bool> OutFileWork::add_signature(const wire::RollingSignature& part) {
  const std::lock_guard lock(file_->decide_mutex);
  delta::RollingSignature& whole = file_->signature;
  if (!file_->awaiting_signature || part.first_block != whole.weak.size() ||
      whole.weak.size() + part.weak.size() > file_->signature_blocks) {
    return fail_with(Code::kProtocol, "rolling signature that was not asked for");
  }
  whole.weak.insert(whole.weak.end(), part.weak.begin(), part.weak.end());
  whole.strong.insert(whole.strong.end(), part.strong.begin(), part.strong.end());
  if (part.last) file_->awaiting_signature = false;
  return part.last;
}

void OutFileWork::rolling_job(Worker& worker) {
  if (!ensure_open()) return;
  std::vector<std::uint64_t> todo;
  delta::RollingSignature signature;
  {
    const std::lock_guard lock(file_->decide_mutex);
    signature = std::move(file_->signature);
    const std::uint64_t window = *file_->unmatched.begin() * kRange / kRollingWindow;
    while (!file_->unmatched.empty() &&
           *file_->unmatched.begin() * kRange / kRollingWindow == window) {
      todo.push_back(*file_->unmatched.begin());
      file_->unmatched.erase(file_->unmatched.begin());
    }
  }
  const auto work = [&]() -> Status {
    const delta::RollingIndex index(parts_.hash, std::move(signature));
    delta::RollingMatcher matcher(parts_.hash, index, file_->ordered());
    std::optional<std::uint64_t> previous;
    for (const std::uint64_t range : todo) {
      if (parts_.tally.stopped() || file_->over.load())
        return fail_with(Code::kCancelled, "stopped");
      if (!previous || *previous + 1 != range) matcher.reset();
      previous = range;
      const std::uint64_t offset = range * kRange;
      const std::uint64_t length = delta::range_length(range, file_->size);
      const std::uint64_t ahead =
          std::min<std::uint64_t>(length + index.block_bytes(), file_->size - offset);
      std::uint8_t* data = worker.scratch(kRange + delta::kMaxRollingBlock);
      VF_ASSIGN(const std::size_t got, io::read_full(file_->fd.get(), data, ahead, offset));
      if (got < length) {
        end(wire::FileResult::kChanged, nullptr);
        return {};
      }
      std::vector<wire::RangeOp> ops = to_wire(matcher.match({data, got}, length, offset));
      VF_ASSIGN(const SegmentMap map, map_segment(offset, offset + length));
      mark_holes(ops, offset, map);
      const delta::Digest digest = parts_.hash.hash_range({data, length}, false).digest;
      VF_TRY(send_range(range, base::Buffer::copy_of({data, length}), std::move(ops), digest));
      answered(1);
    }
    return {};
  };
  if (auto done = work(); !done) return failed(done.error());
  bool more = false;
  {
    const std::lock_guard lock(file_->decide_mutex);
    more = !file_->unmatched.empty();
  }
  if (more && !file_->over.load()) begin_rolling();
}

void OutFileWork::retry_job(std::uint64_t range) {
  if (!ensure_open()) return;
  const auto work = [&]() -> Status {
    if (range >= file_->ranges) return fail_with(Code::kProtocol, "retry past the end of the file");
    VF_ASSIGN(base::Buffer content, read_range(range));
    const delta::Digest digest = parts_.hash.hash_range(content.bytes(), false).digest;
    VF_ASSIGN(const io::Metadata now, io::stat_fd(file_->fd.get()));
    const bool device = file_->before.type == io::FileType::kBlockDevice;
    if ((!device && !io::unchanged(file_->before, now)) ||
        content.size() < delta::range_length(range, file_->size)) {
      end(wire::FileResult::kChanged, nullptr);
      return {};
    }
    std::vector<wire::RangeOp> ops{
        {wire::OpKind::kLiteral, static_cast<std::uint32_t>(content.size()), 0}};
    return send_range(range, std::move(content), std::move(ops), digest);
  };
  if (auto done = work(); !done) {
    if (done.error().code == Code::kProtocol) return sender_.protocol_error(done.error());
    failed(done.error());
  }
}

}  // namespace volferry::session
