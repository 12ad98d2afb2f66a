// SPDX-License-Identifier: Apache-2.0
// The signatures of the basis: range digests ahead of the content, block hashes and rolling hashes
// on demand.
#include <algorithm>

#include "engine/delta/geometry.h"
#include "engine/delta/zero.h"
#include "engine/io/file.h"
#include "engine/io/reader.h"
#include "engine/session/convert.h"
#include "engine/session/in_file.h"
#include "engine/session/internal/in_file_busy.h"
#include "engine/session/rolling_parts.h"

namespace volferry::session {

namespace {
constexpr std::uint64_t kRange = delta::kRangeBytes;
// Signed in one go and then sent: at most 3 MiB of hashes, with blocks of 512 bytes.
constexpr std::uint64_t kRollingBatch = 128u << 20;
}  // namespace

bool InFile::sign_next(Worker& worker) {
  const Busy busy(*this);
  if (busy.over() || parts_.tally.stopped()) return false;
  std::uint64_t segment = 0;
  {
    const std::lock_guard lock(mutex_);
    if (next_segment_ >= segment_left_.size()) return false;
    segment = next_segment_++;
  }
  const std::uint64_t first = segment * wire::kRangesPerSegment;
  const std::uint64_t last = std::min(first + wire::kRangesPerSegment, ranges_);
  wire::SegmentRequest request{req_, static_cast<std::uint32_t>(segment), {}};
  request.ranges.resize(last - first);
  const auto sign = [&]() -> Status {
    // What to read of each range: from the interrupted temporary where it has data, else from the
    // old file.
    std::vector<std::uint64_t> lengths(last - first);
    io::ReadAhead from_basis(worker.queue(), parts_.pool, basis_.get(), 4);
    for (std::uint64_t range = first; range < last; ++range) {
      const std::uint64_t begin = range * kRange;
      const std::uint64_t length = delta::range_length(range, size_);
      if (interrupted_fd_ >= 0) {
        VF_ASSIGN(const auto data, io::next_data(interrupted_fd_, begin, begin + length));
        if (data) {
          const std::lock_guard lock(mutex_);
          from_temp_[range] = true;
          lengths[range - first] = length;
          continue;
        }
      }
      const std::uint64_t there = std::min(length, delta::range_length(range, basis_size_));
      if (there == 0) continue;
      VF_ASSIGN(const auto data, io::next_data(basis_.get(), begin, begin + there));
      if (!data) {
        if (there == length) request.ranges[range - first].kind = wire::RangeSigKind::kZero;
        continue;
      }
      lengths[range - first] = there;
      from_basis.add(begin, there);
    }
    for (std::uint64_t range = first; range < last; ++range) {
      const std::uint64_t length = lengths[range - first];
      wire::RangeSig& sig = request.ranges[range - first];
      if (length == 0) {
        if (sig.kind == wire::RangeSigKind::kZero) {
          const std::lock_guard lock(mutex_);
          zero_sig_[range] = true;
        }
        continue;
      }
      base::Buffer content;
      bool temp = false;
      {
        const std::lock_guard lock(mutex_);
        temp = from_temp_[range];
      }
      if (temp) {
        VF_ASSIGN(content, parts_.pool.acquire());
        VF_ASSIGN(const std::size_t got,
                  io::read_full(interrupted_fd_, content.data(), length, range * kRange));
        content.set_size(got);
      } else {
        VF_ASSIGN(auto piece, from_basis.next());
        if (piece) content = std::move(piece->data);
        if (content.size() > length) content.set_size(length);
      }
      if (content.size() == delta::range_length(range, size_) && delta::is_zero(content.bytes())) {
        sig.kind = wire::RangeSigKind::kZero;
        const std::lock_guard lock(mutex_);
        zero_sig_[range] = true;
      } else if (!content.empty()) {
        sig.kind = wire::RangeSigKind::kDigest;
        sig.digest = to_wire(parts_.hash.hash_range(content.bytes(), false).digest);
      }
    }
    return {};
  };
  if (auto done = sign(); !done) {
    fail(done.error());
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    segment_left_[segment] = static_cast<std::uint32_t>(last - first);
  }
  if (!parts_.channel.send(wire::make_frame(request))) return false;
  return true;
}

void InFile::on_fine_request(Worker& worker, const wire::FineRequest& request) {
  const Busy busy(*this);
  if (busy.over()) return;
  for (const std::uint64_t range : request.ranges) {
    wire::FineHashes hashes{req_, range, {}};
    int fd = -1;
    {
      const std::lock_guard lock(mutex_);
      if (range < ranges_) fd = read_fd(range);
    }
    if (fd < 0) return fail({Code::kProtocol, 0, "block hashes asked for a range without basis"});
    const std::uint64_t limit = fd == basis_.get() ? basis_size_ : size_;
    const std::uint64_t length =
        std::min(delta::range_length(range, limit), delta::range_length(range, size_));
    std::uint8_t* data = worker.scratch(kRange);
    auto got = io::read_full(fd, data, length, range * kRange);
    if (!got) return fail(got.error());
    if (*got > 0) hashes.blocks = parts_.hash.hash_range({data, *got}, true).blocks;
    if (!parts_.channel.send(wire::make_frame(hashes))) return;
  }
}

void InFile::on_rolling_request(const wire::RollingRequest& request) {
  const Busy busy(*this);
  if (busy.over()) return;
  const int fd = basis_ ? basis_.get() : interrupted_fd_;
  if (fd < 0) return fail({Code::kProtocol, 0, "rolling signature asked for without basis"});
  std::uint64_t blocks = 0;
  bool whole = true;
  for (std::uint64_t done = 0; done < request.length && whole; done += kRollingBatch) {
    if (parts_.tally.stopped()) return;
    const RollingPiece piece{request.offset + done, std::min(request.length - done, kRollingBatch),
                             request.block_bytes};
    auto parts = rolling_parts(parts_.hash, fd, piece, parts_.workers.count());
    if (!parts) return fail(parts.error());
    for (delta::RollingSignature& part : *parts) {
      const std::uint64_t first = blocks;
      blocks += part.weak.size();
      wire::RollingSignature message{req_, first, false, std::move(part.weak),
                                     std::move(part.strong)};
      if (!parts_.channel.send(wire::make_frame(message))) return;
    }
    whole = blocks == (done + piece.length) / request.block_bytes;
  }
  (void)parts_.channel.send(wire::make_frame(wire::RollingSignature{req_, blocks, true, {}, {}}));
}

}  // namespace volferry::session
