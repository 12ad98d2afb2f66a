// SPDX-License-Identifier: Apache-2.0
#include "engine/session/remote_content.h"

#include <algorithm>
#include <cerrno>

#include "engine/io/file.h"
#include "engine/session/convert.h"
#include "engine/session/sizes.h"

namespace volferry::session {

void RemoteContent::protocol_error(Error error) {
  parts_.channel.abort(error);
  parts_.tally.fail(std::move(error));
}

template <typename Message>
std::optional<Message> RemoteContent::decode(const wire::Frame& frame) {
  Message message;
  auto decoded = wire::decode(frame.head, message);
  if (decoded) return message;
  protocol_error(std::move(decoded).error());
  return std::nullopt;
}

RemoteContent::FilePtr RemoteContent::find(std::uint32_t req) {
  const std::lock_guard lock(mutex_);
  const auto it = large_.find(req);
  return it == large_.end() ? nullptr : it->second;
}

// ---- asking

void RemoteContent::fetch(FileJobPtr job) {
  const std::uint32_t req = parts_.next_request.fetch_add(1);
  const std::uint64_t size = job->want.size;
  const bool delta = job->old && (job->old->meta.size >= kDeltaFileBytes || job->device) &&
                     size >= kDeltaFileBytes;
  if (size <= kPackFileBytes && !job->device && (!delta || job->compare_only)) {
    fetch_small(job, req);
  } else {
    fetch_large(job, req);
  }
}

void RemoteContent::fetch_small(const FileJobPtr& job, std::uint32_t req) {
  wire::FileRequest request;
  request.req = req;
  request.dir = job->dir_number;
  request.index = job->index;
  request.size = job->want.size;
  request.mtime_s = job->want.mtime_s;
  request.mtime_ns = job->want.mtime_ns;
  if (job->compare_only) request.flags |= wire::kRequestCompareOnly;
  if (job->old && job->old->meta.size == job->want.size && !job->new_inode) {
    // Equal sizes: perhaps only the time differs. One read here may save sending the file.
    auto basis = parts_.targets.open_basis(*job);
    if (basis && *basis) {
      base::Buffer content = base::Buffer::heap(kPackFileBytes);
      auto got = io::read_full(basis->get(), content.data(), kPackFileBytes, 0);
      if (got && *got == job->want.size) {
        request.kind = wire::RequestKind::kDigest;
        request.digest = to_wire(parts_.hash.hash_range({content.data(), *got}, false).digest);
      }
    }
    if (request.kind != wire::RequestKind::kDigest && job->compare_only) {
      parts_.tally.item_error(job->path(), EACCES, "the destination's content cannot be read");
      return done(job, Outcome::kFailed);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    small_.emplace(req, job);
  }
  (void)parts_.channel.send(wire::make_frame(request));
}

void RemoteContent::fetch_large(const FileJobPtr& job, std::uint32_t req) {
  auto ended = [this, job, req](const InFile::End& end) {
    {
      const std::lock_guard lock(mutex_);
      large_.erase(req);
    }
    if (end.again) return refetch(job, *end.meta);
    done(job, end.outcome);
  };
  auto file =
      std::make_shared<InFile>(parts_, req, job, std::move(ended), [this] { segment_done(); });
  auto request = file->prepare();
  if (!request) {
    parts_.tally.destination_error(job->path(), request.error());
    return done(job, Outcome::kFailed);
  }
  {
    const std::lock_guard lock(mutex_);
    large_.emplace(req, file);
  }
  if (!parts_.channel.send(wire::make_frame(*request))) return;
  if (!file->segmented()) return;
  const std::uint64_t segments =
      (job->want.size + wire::kRangeBytes * wire::kRangesPerSegment - 1) /
      (wire::kRangeBytes * wire::kRangesPerSegment);
  const unsigned jobs =
      static_cast<unsigned>(std::min<std::uint64_t>(segments, parts_.workers.count()));
  for (unsigned i = 0; i < jobs; ++i) {
    parts_.workers.post(Workers::Lane::kNormal,
                        [this, file](Worker& worker) { sign_job(file, worker); });
  }
}

void RemoteContent::sign_job(const FilePtr& file, Worker& worker) {
  {
    const std::lock_guard lock(mutex_);
    if (open_segments_ >= kMaxOpenSegments) {
      waiting_.push_back(file);
      return;
    }
    ++open_segments_;
  }
  if (!file->sign_next(worker)) return segment_done();
  parts_.workers.post(Workers::Lane::kNormal, [this, file](Worker& next) { sign_job(file, next); });
}

void RemoteContent::segment_done() {
  FilePtr next;
  {
    const std::lock_guard lock(mutex_);
    --open_segments_;
    if (!waiting_.empty()) {
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }
  if (next != nullptr) {
    parts_.workers.post(Workers::Lane::kNormal,
                        [this, next](Worker& worker) { sign_job(next, worker); });
  }
}

void RemoteContent::dir_released(std::uint32_t dir) {
  (void)parts_.channel.send(wire::make_frame(wire::DirRelease{dir}));
}

void RemoteContent::refetch(const FileJobPtr& job, const wire::EntryMeta& meta) {
  if (++job->tries >= kChangeRetries || parts_.tally.stopped()) {
    parts_.tally.item_changed(job->path(), "kept changing while it was read");
    return done(job, Outcome::kFailed);
  }
  const std::uint64_t group = job->want.hardlink_group;
  job->want = meta;
  job->want.hardlink_group = group;
  job->resume = true;
  parts_.tally.bytes_done.fetch_sub(job->counted.exchange(0));
  parts_.workers.post(Workers::Lane::kUrgent, [this, job](Worker&) { fetch(job); });
}

void RemoteContent::done(const FileJobPtr& job, Outcome outcome) {
  // An installed file has used it up; a stopped session leaves it to the next run.
  const bool useless =
      outcome != Outcome::kInstalled && !job->compare_only && !parts_.tally.stopped();
  if (useless) parts_.targets.drop_interrupted(*job);
  sink_.job_done(job, outcome);
}

// ---- receiving

bool RemoteContent::on_frame(wire::Frame& frame) {
  using Lane = Workers::Lane;
  const std::uint64_t charge = frame.charge();
  const auto used = [this, charge] { parts_.channel.consumed(wire::FrameClass::kData, charge); };
  switch (frame.type) {
    case wire::MessageType::kPack: {
      auto pack = decode<wire::Pack>(frame);
      if (!pack) return true;
      auto body = std::make_shared<base::Buffer>(std::move(frame.body));
      parts_.workers.post(Lane::kUrgent, [this, used, pack = std::move(*pack), body](Worker&) {
        apply_pack(pack, std::move(*body));
        used();
      });
      return true;
    }
    case wire::MessageType::kRangeData: {
      auto data = decode<wire::RangeData>(frame);
      if (!data) return true;
      FilePtr file = find(data->req);
      if (file == nullptr) {  // of a file that has failed here meanwhile
        used();
        return true;
      }
      auto body = std::make_shared<base::Buffer>(std::move(frame.body));
      auto job = [file, used, data = std::move(*data), body](Worker& worker) {
        file->on_range(worker, data, std::move(*body));
        used();
      };
      // A copy may read what a later range will overwrite.
      if (file->ordered()) {
        parts_.workers.post_to(file->req(), std::move(job));
      } else {
        parts_.workers.post(Lane::kUrgent, std::move(job));
      }
      return true;
    }
    case wire::MessageType::kRangeRun: {
      auto run = decode<wire::RangeRun>(frame);
      if (!run) return true;
      parts_.workers.post(Lane::kUrgent, [file = find(run->req), used, run = *run](Worker&) {
        if (file != nullptr) file->on_run(run);
        used();
      });
      return true;
    }
    case wire::MessageType::kFileEnd: {
      auto end = decode<wire::FileEnd>(frame);
      if (!end) return true;
      parts_.workers.post(Lane::kUrgent,
                          [file = find(end->req), used, end = std::move(*end)](Worker&) {
                            if (file != nullptr) file->on_end(end);
                            used();
                          });
      return true;
    }
    case wire::MessageType::kFineRequest: {
      auto request = decode<wire::FineRequest>(frame);
      if (!request) return true;
      parts_.workers.post(Lane::kUrgent, [file = find(request->req),
                                          request = std::move(*request)](Worker& worker) {
        if (file != nullptr) file->on_fine_request(worker, request);
      });
      return true;
    }
    case wire::MessageType::kRollingRequest: {
      auto request = decode<wire::RollingRequest>(frame);
      if (!request) return true;
      parts_.workers.post(Lane::kNormal, [file = find(request->req), request = *request](Worker&) {
        if (file != nullptr) file->on_rolling_request(request);
      });
      return true;
    }
    default:
      return false;
  }
}

void RemoteContent::apply_pack(const wire::Pack& pack, base::Buffer body) {
  if (pack.compressed) {
    auto raw = parts_.coder.decompress(body, pack.raw_bytes);
    if (!raw) return protocol_error(std::move(raw).error());
    body = std::move(*raw);
  }
  if (body.size() != pack.raw_bytes)
    return protocol_error({Code::kProtocol, 0, "a pack of another length than announced"});
  std::size_t at = 0;
  for (const wire::PackedFile& file : pack.files) {
    apply_packed(file, body.bytes().subspan(at, file.length));
    at += file.length;
  }
}

void RemoteContent::apply_packed(const wire::PackedFile& file, base::Bytes content) {
  FileJobPtr job;
  {
    const std::lock_guard lock(mutex_);
    const auto it = small_.find(file.req);
    if (it != small_.end()) {
      job = std::move(it->second);
      small_.erase(it);
    }
  }
  if (job == nullptr) return protocol_error({Code::kProtocol, 0, "content that was not asked for"});
  const bool fits = file.result == wire::FileResult::kOk        ? !job->compare_only
                    : file.result == wire::FileResult::kDiffers ? job->compare_only
                    : file.result == wire::FileResult::kSame    ? job->old.has_value()
                                                                : true;
  if (!fits)
    return protocol_error({Code::kProtocol, 0, "an answer to another question than was asked"});
  const auto ended = [&](Outcome outcome) { done(job, outcome); };
  if (file.has_meta && file.result != wire::FileResult::kChanged) {
    const std::uint64_t group = job->want.hardlink_group;
    job->want = file.meta;
    job->want.hardlink_group = group;
  }
  switch (file.result) {
    case wire::FileResult::kOk: {
      const bool good = content.size() == job->want.size && content.size() <= wire::kRangeBytes &&
                        equal(file.digest, parts_.hash.hash_range(content, false).digest);
      if (!good) {
        if (++job->tries < 2) {
          parts_.workers.post(Workers::Lane::kUrgent, [this, job](Worker&) { fetch(job); });
          return;
        }
        parts_.tally.item_error(job->path(), 0, "content arrived wrong twice");
        return ended(Outcome::kFailed);
      }
      if (parts_.tally.is_full()) return ended(Outcome::kFailed);
      if (auto written = parts_.targets.write_small(*job, content, file.sparse); !written) {
        parts_.tally.destination_error(job->path(), written.error());
        return ended(Outcome::kFailed);
      }
      parts_.tally.literal_bytes.fetch_add(content.size());
      return ended(Outcome::kInstalled);
    }
    case wire::FileResult::kSame: {
      if (job->compare_only) return ended(Outcome::kSame);
      auto rewritten = parts_.targets.match_sparse(*job, file.sparse);
      if (!rewritten) {
        parts_.tally.destination_error(job->path(), rewritten.error());
        return ended(Outcome::kFailed);
      }
      return ended(*rewritten ? Outcome::kInstalled : Outcome::kSame);
    }
    case wire::FileResult::kDiffers:
      return ended(Outcome::kDiffers);
    case wire::FileResult::kChanged:
      if (file.has_meta) return refetch(job, file.meta);
      parts_.tally.item_changed(job->path(), "kept changing while it was read");
      return ended(Outcome::kFailed);
    case wire::FileResult::kVanished:
      parts_.tally.item_changed(job->path(), "vanished before it could be read");
      return ended(Outcome::kFailed);
    case wire::FileResult::kError:
      parts_.tally.source_error(job->path(), file.os_errno, file.text);
      return ended(Outcome::kFailed);
  }
}

void RemoteContent::quiesce() {
  if (!parts_.tally.stopped()) return parts_.workers.drain();
  parts_.workers.stop();
  abandon();
}

// Files that are open end without an outcome, keeping what has arrived.
void RemoteContent::abandon() {
  std::vector<FilePtr> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [req, file] : large_) open.push_back(file);
    small_.clear();
    waiting_.clear();
  }
  for (const FilePtr& file : open) file->abandon();
}

}  // namespace volferry::session
