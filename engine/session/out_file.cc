// SPDX-License-Identifier: Apache-2.0
#include "engine/session/out_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/delta/aligned.h"
#include "engine/delta/geometry.h"
#include "engine/delta/zero.h"
#include "engine/io/reader.h"
#include "engine/session/convert.h"
#include "engine/session/internal/out_file_runs.h"
#include "engine/session/sizes.h"

namespace volferry::session {

namespace {
constexpr std::uint64_t kRange = delta::kRangeBytes;
constexpr std::uint64_t kSegment = kRange * wire::kRangesPerSegment;
}  // namespace

bool OutFileWork::SegmentMap::all_hole(std::uint64_t begin, std::uint64_t end) const {
  const auto it = std::partition_point(
      data.begin(), data.end(), [&](const io::Extent& extent) { return extent.end <= begin; });
  return it == data.end() || it->begin >= end;
}

bool OutFileWork::SegmentMap::all_data(std::uint64_t begin, std::uint64_t end) const {
  const auto it = std::partition_point(
      data.begin(), data.end(), [&](const io::Extent& extent) { return extent.end <= begin; });
  return it != data.end() && it->begin <= begin && it->end >= end;
}

bool OutFileWork::ensure_open() {
  if (file_->over.load() || parts_.tally.stopped()) return false;
  const std::lock_guard lock(file_->open_mutex);
  if (file_->opened) return true;
  auto opened = parts_.source.open_file(file_->request.dir, file_->request.index);
  if (!opened) {
    if (opened.error().code == Code::kProtocol) sender_.protocol_error(opened.error());
    failed(opened.error());
    return false;
  }
  file_->before = opened->meta;
  file_->fd = std::move(opened->fd);
  file_->size = file_->before.size;
  file_->ranges = delta::range_count(file_->size);
  if (file_->size != file_->request.size) {
    end(wire::FileResult::kChanged, nullptr);
    return false;
  }
  if (parts_.direct_reads && file_->size >= kDirectBytes &&
      !io::mostly_cached(file_->fd.get(), file_->size) &&
      io::direct_alignment(file_->fd.get()).value_or(1u << 30) <= 4096) {
    const std::string self = "/proc/self/fd/" + std::to_string(file_->fd.get());
    file_->direct_fd = base::UniqueFd(::open(self.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  }
  file_->opened = true;
  return true;
}

void OutFileWork::failed(const Error& error) {
  if (error.code == Code::kCancelled || error.code == Code::kConnectionLost) return;
  if (error.os_errno == ENOENT) return end(wire::FileResult::kVanished, &error);
  parts_.tally.source_errors.fetch_add(1);
  if (!parts_.source.is_image()) return end(wire::FileResult::kError, &error);
  Error named = error;
  named.context = parts_.source.path_of(0, 0) + ": " + error.context;
  end(wire::FileResult::kError, &named);
}

void OutFileWork::end(wire::FileResult result, const Error* error) {
  if (file_->over.exchange(true)) return;
  wire::FileEnd message;
  message.req = file_->request.req;
  message.result = result;
  if (error != nullptr) {
    message.os_errno = error->os_errno;
    message.text = error->context;
  }
  const bool content = result == wire::FileResult::kOk || result == wire::FileResult::kSame ||
                       result == wire::FileResult::kDiffers;
  if (result == wire::FileResult::kChanged ||
      (content && (file_->before.mtime.seconds != file_->request.mtime_s ||
                   file_->before.mtime.nanoseconds != file_->request.mtime_ns))) {
    if (auto meta = parts_.source.describe(file_->fd.get())) {
      message.has_meta = true;
      message.meta = std::move(*meta);
      if (file_->before.type == io::FileType::kBlockDevice) message.meta.size = file_->size;
    }
  }
  (void)parts_.channel.send(wire::make_frame(message), file_->request.req);
  if (content) {
    // Kept until the receiver has verified every range: it may ask for one again.
    file_->over.store(false);
    return;
  }
  const std::lock_guard lock(sender_.mutex_);
  sender_.files_.erase(file_->request.req);
}

void OutFileWork::answered(std::uint64_t count) {
  if (file_->left.fetch_sub(count) == count) finish();
  if (file_->request.kind == wire::RequestKind::kSegments) decided(count);
}

void OutFileWork::finish() {
  auto after = io::stat_fd(file_->fd.get());
  if (!after) return failed(after.error());
  if (file_->before.type == io::FileType::kBlockDevice) after->size = file_->before.size;
  const bool still =
      file_->before.type == io::FileType::kBlockDevice || io::unchanged(file_->before, *after);
  if (!still) return end(wire::FileResult::kChanged, nullptr);
  end(file_->compare_only() ? wire::FileResult::kSame : wire::FileResult::kOk, nullptr);
}

Result<OutFileWork::SegmentMap> OutFileWork::map_segment(std::uint64_t begin,
                                                         std::uint64_t end) const {
  SegmentMap map;
  const std::uint64_t stop = std::min(end, file_->size);
  for (std::uint64_t at = begin; at < stop;) {
    VF_ASSIGN(const std::optional<io::Extent> extent, io::next_data(file_->fd.get(), at, stop));
    if (!extent) break;
    map.data.push_back(*extent);
    at = extent->end;
  }
  return map;
}

void OutFileWork::mark_holes(std::vector<wire::RangeOp>& ops, std::uint64_t offset,
                             const SegmentMap& map) const {
  // A device does not tell its holes; zeros there need no space at the other end.
  const bool device = file_->before.type == io::FileType::kBlockDevice;
  std::vector<wire::RangeOp> out;
  std::uint64_t at = offset;
  for (const wire::RangeOp& op : ops) {
    std::uint64_t left = op.length;
    while (left > 0) {
      std::uint64_t piece = left;
      wire::OpKind kind = op.kind;
      if (kind == wire::OpKind::kZero && device) {
        kind = wire::OpKind::kHole;
      } else if (!device && (kind == wire::OpKind::kZero || kind == wire::OpKind::kSame)) {
        const auto it =
            std::partition_point(map.data.begin(), map.data.end(),
                                 [&](const io::Extent& extent) { return extent.end <= at; });
        const bool hole = it == map.data.end() || it->begin > at;
        if (hole) kind = wire::OpKind::kHole;
        const std::uint64_t limit = hole ? (it == map.data.end() ? at + left : it->begin) : it->end;
        piece = std::min(left, limit - at);
      }
      if (!out.empty() && out.back().kind == kind && kind != wire::OpKind::kCopy) {
        out.back().length += static_cast<std::uint32_t>(piece);
      } else {
        out.push_back({kind, static_cast<std::uint32_t>(piece), op.basis_offset});
      }
      at += piece;
      left -= piece;
    }
  }
  ops = std::move(out);
}

Status OutFileWork::send_equal(std::uint64_t range, const SegmentMap& map) {
  const std::uint64_t length = delta::range_length(range, file_->size);
  wire::RangeData data;
  data.req = file_->request.req;
  data.range = range;
  data.ops = {{wire::OpKind::kSame, static_cast<std::uint32_t>(length), 0}};
  mark_holes(data.ops, range * kRange, map);
  return parts_.channel.send(wire::make_frame(data), file_->request.req);
}

Status OutFileWork::send_range(std::uint64_t range, base::Buffer content,
                               std::vector<wire::RangeOp> ops, const delta::Digest& digest) {
  std::size_t literal = 0;
  std::size_t at = 0;
  for (const wire::RangeOp& op : ops) {
    if (op.kind == wire::OpKind::kLiteral) {
      if (literal != at) std::memmove(content.data() + literal, content.data() + at, op.length);
      literal += op.length;
    }
    at += op.length;
  }
  content.set_size(literal);
  // A short body must not keep a whole slot while it waits to be sent.
  if (literal <= wire::kHeapBodyBytes) content = base::Buffer::copy_of(content.bytes());
  wire::RangeData data;
  data.req = file_->request.req;
  data.range = range;
  data.raw_bytes = static_cast<std::uint32_t>(literal);
  data.digest = to_wire(digest);
  data.ops = std::move(ops);
  parts_.coder.observe_link(parts_.channel.stats());
  data.compressed = parts_.coder.compress(content);
  std::optional<std::uint32_t> hint;
  if (file_->ordered()) hint = file_->request.req;
  return parts_.channel.send(wire::make_frame(data, std::move(content)), hint);
}

Status OutFileWork::send_plain(std::uint64_t range, base::Buffer content, const SegmentMap& map) {
  const delta::Digest digest = parts_.hash.hash_range(content.bytes(), false).digest;
  std::vector<wire::RangeOp> ops = to_wire(delta::literal_or_zero(content.bytes()));
  mark_holes(ops, range * kRange, map);
  return send_range(range, std::move(content), std::move(ops), digest);
}

Result<base::Buffer> OutFileWork::read_range(std::uint64_t range) {
  VF_ASSIGN(base::Buffer content, parts_.pool.acquire());
  const std::uint64_t length = delta::range_length(range, file_->size);
  VF_ASSIGN(const std::size_t got,
            io::read_full(file_->fd.get(), content.data(), length, range * kRange));
  content.set_size(got);
  return content;
}

void OutFileWork::queue_reads(io::ReadAhead& reader, const SegmentMap& map, std::uint64_t first,
                              std::uint64_t last) const {
  for (std::uint64_t range = first; range < last; ++range) {
    const std::uint64_t begin = range * kRange;
    const std::uint64_t length = delta::range_length(range, file_->size);
    if (!map.all_hole(begin, begin + length)) reader.add(begin, length);
  }
}

void OutFileWork::start_whole() {
  if (!ensure_open()) return;
  if (file_->ranges == 0) return finish();
  file_->left = file_->ranges;
  const std::uint64_t segments =
      (file_->ranges + wire::kRangesPerSegment - 1) / wire::kRangesPerSegment;
  const unsigned jobs =
      static_cast<unsigned>(std::min<std::uint64_t>(segments, parts_.workers.count()));
  for (unsigned i = 0; i < jobs; ++i) {
    parts_.workers.post(Workers::Lane::kNormal, [sender = &sender_, file = file_](Worker& worker) {
      OutFileWork(*sender, file).whole_job(worker);
    });
  }
}

void OutFileWork::whole_job(Worker& worker) {
  if (!ensure_open()) return;
  const std::uint64_t segment = file_->next_segment.fetch_add(1);
  const std::uint64_t first = segment * wire::kRangesPerSegment;
  if (first >= file_->ranges) return;
  const std::uint64_t last = std::min(first + wire::kRangesPerSegment, file_->ranges);
  const auto send_all = [&]() -> Status {
    VF_ASSIGN(const SegmentMap map, map_segment(first * kRange, last * kRange));
    Runs runs(*this);
    const int fd = file_->direct_fd ? file_->direct_fd.get() : file_->fd.get();
    io::ReadAhead reader(worker.queue(), parts_.pool, fd, 4);
    queue_reads(reader, map, first, last);
    for (std::uint64_t range = first; range < last; ++range) {
      if (parts_.tally.stopped() || file_->over.load())
        return fail_with(Code::kCancelled, "stopped");
      const std::uint64_t length = delta::range_length(range, file_->size);
      if (map.all_hole(range * kRange, range * kRange + length)) {
        VF_TRY(runs.add(wire::OpKind::kHole, range));
        continue;
      }
      VF_ASSIGN(std::optional<io::ReadPiece> piece, reader.next());
      if (!piece ||
          piece->data.size() < length) {  // shrank: the final check will tell the receiver
        end(wire::FileResult::kChanged, nullptr);
        return {};
      }
      const bool device = file_->before.type == io::FileType::kBlockDevice;
      const bool one_kind = device || map.all_data(range * kRange, range * kRange + length);
      if (one_kind && delta::is_zero(piece->data.bytes())) {
        VF_TRY(runs.add(device ? wire::OpKind::kHole : wire::OpKind::kZero, range));
        continue;
      }
      VF_TRY(runs.flush());
      VF_TRY(send_plain(range, std::move(piece->data), map));
      answered(1);
    }
    return runs.flush();
  };
  if (auto sent = send_all(); !sent) return failed(sent.error());
  if (file_->over.load() || file_->next_segment.load() * wire::kRangesPerSegment >= file_->ranges)
    return;
  parts_.workers.post(Workers::Lane::kNormal, [sender = &sender_, file = file_](Worker& next) {
    OutFileWork(*sender, file).whole_job(next);
  });
}

}  // namespace volferry::session
