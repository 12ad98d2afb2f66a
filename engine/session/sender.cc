// SPDX-License-Identifier: Apache-2.0
#include "engine/session/sender.h"

#include <cerrno>
#include <cstring>

#include "engine/delta/geometry.h"
#include "engine/io/file.h"
#include "engine/session/convert.h"
#include "engine/session/out_file.h"
#include "engine/session/sizes.h"

namespace volferry::session {

void Sender::protocol_error(Error error) {
  parts_.channel.abort(error);
  parts_.tally.fail(std::move(error));
}

template <typename Message, typename Handler>
bool Sender::dispatch(const wire::Frame& frame, Handler handler) {
  Message message;
  if (auto decoded = wire::decode(frame.head, message); !decoded) {
    protocol_error(std::move(decoded).error());
  } else {
    handler(std::move(message));
  }
  return true;
}

Sender::FilePtr Sender::find(std::uint32_t req) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(req);
  return it == files_.end() ? nullptr : it->second;
}

bool Sender::on_frame(wire::Frame& frame) {
  using Lane = Workers::Lane;
  switch (frame.type) {
    case wire::MessageType::kBeginPass:
      return dispatch<wire::BeginPass>(frame, [&](wire::BeginPass pass) {
        const std::lock_guard lock(mutex_);
        commands_.emplace_back(pass);
        commands_ready_.notify_all();
      });
    case wire::MessageType::kFinish:
      return dispatch<wire::Finish>(frame, [&](wire::Finish result) {
        const std::lock_guard lock(mutex_);
        commands_.emplace_back(std::move(result));
        commands_ready_.notify_all();
      });
    case wire::MessageType::kDirRelease:
      return dispatch<wire::DirRelease>(frame,
                                        [&](wire::DirRelease m) { parts_.source.release(m.dir); });
    case wire::MessageType::kFileRequest:
      return dispatch<wire::FileRequest>(
          frame, [&](wire::FileRequest m) { on_file_request(std::move(m)); });
    case wire::MessageType::kSegmentRequest:
      return dispatch<wire::SegmentRequest>(frame, [&](wire::SegmentRequest m) {
        // Unknown numbers are requests that have ended by an error meanwhile.
        if (FilePtr file = find(m.req)) {
          parts_.workers.post(Lane::kNormal, [this, file, m = std::move(m)](Worker& worker) {
            OutFileWork(*this, file).compare_job(worker, m);
          });
        }
      });
    case wire::MessageType::kFineHashes:
      return dispatch<wire::FineHashes>(frame, [&](wire::FineHashes m) {
        if (FilePtr file = find(m.req)) {
          parts_.workers.post(Lane::kUrgent, [this, file, m = std::move(m)](Worker& worker) {
            OutFileWork(*this, file).fine_job(worker, m);
          });
        }
      });
    case wire::MessageType::kRollingSignature:
      return dispatch<wire::RollingSignature>(
          frame, [&](wire::RollingSignature m) { on_rolling_signature(std::move(m)); });
    case wire::MessageType::kRangeRetry:
      return dispatch<wire::RangeRetry>(frame, [&](wire::RangeRetry m) {
        if (FilePtr file = find(m.req)) {
          parts_.workers.post(Lane::kUrgent, [this, file, m](Worker&) {
            OutFileWork(*this, file).retry_job(m.range);
          });
        }
      });
    case wire::MessageType::kFileCancel:
      return dispatch<wire::FileCancel>(frame, [&](wire::FileCancel m) {
        const std::lock_guard lock(mutex_);
        const auto it = files_.find(m.req);
        if (it == files_.end()) return;
        it->second->over.store(true);
        files_.erase(it);
      });
    default:
      return false;
  }
}

void Sender::on_closed() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  commands_ready_.notify_all();
}

Result<wire::Finish> Sender::run() {
  for (;;) {
    Command command;
    {
      std::unique_lock lock(mutex_);
      commands_ready_.wait(lock, [&] { return closed_ || !commands_.empty(); });
      if (commands_.empty())
        return fail_with(Code::kConnectionLost, "the connection ended before the sync did");
      command = std::move(commands_.front());
      commands_.pop_front();
    }
    if (auto* finish = std::get_if<wire::Finish>(&command)) return std::move(*finish);
    const wire::BeginPass pass = std::get<wire::BeginPass>(command);
    // Counters tell of the newest pass only.
    parts_.tally.files_total = 0;
    parts_.tally.bytes_total = 0;
    parts_.tally.dirs_total = 0;
    VF_TRY(parts_.source.walk(*this));
    parts_.tally.list_ends();
    wire::ListEnd end;
    end.pass = pass.pass;
    end.read_errors = parts_.tally.source_errors.load();
    end.files = parts_.tally.files_total.load();
    end.dirs = parts_.tally.dirs_total.load();
    end.bytes = parts_.tally.bytes_total.load();
    VF_TRY(parts_.channel.send(wire::make_frame(end)));
  }
}

Status Sender::on_list(wire::DirList list) { return parts_.channel.send(wire::make_frame(list)); }

void Sender::on_file_request(wire::FileRequest request) {
  if (request.kind != wire::RequestKind::kSegments && request.size <= kPackFileBytes) {
    bool start = false;
    {
      const std::lock_guard lock(mutex_);
      small_.push_back(std::move(request));
      start = pack_jobs_ < parts_.workers.count();
      if (start) ++pack_jobs_;
    }
    if (start)
      parts_.workers.post(Workers::Lane::kNormal, [this](Worker& worker) { pack_job(worker); });
    return;
  }
  auto file = std::make_shared<OutFile>(std::move(request));
  {
    const std::lock_guard lock(mutex_);
    if (!files_.emplace(file->request.req, file).second) {
      return protocol_error({Code::kProtocol, 0, "request number used twice"});
    }
  }
  if (file->request.kind == wire::RequestKind::kSegments) {
    file->undecided = delta::range_count(file->request.size);
    file->left = file->undecided;
    if (file->undecided == 0) {
      return protocol_error({Code::kProtocol, 0, "segments of an empty file requested"});
    }
    return;
  }
  parts_.workers.post(Workers::Lane::kNormal,
                      [this, file](Worker&) { OutFileWork(*this, file).start_whole(); });
}

void Sender::on_rolling_signature(wire::RollingSignature part) {
  FilePtr file = find(part.req);
  if (file == nullptr) return;
  auto whole = OutFileWork(*this, file).add_signature(part);
  if (!whole) return protocol_error(std::move(whole).error());
  if (*whole) {
    parts_.workers.post(Workers::Lane::kUrgent, [this, file](Worker& worker) {
      OutFileWork(*this, file).rolling_job(worker);
    });
  }
}

bool Sender::take_small(std::vector<wire::FileRequest>& batch) {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  // Several workers share a short queue: a batch leaves work for the others.
  const std::size_t fair = small_.size() / parts_.workers.count() + 1;
  while (!small_.empty() && batch.size() < fair && batch.size() < wire::kMaxPackFiles &&
         bytes + small_.front().size <= kPackFrameBytes) {
    bytes += small_.front().size;
    batch.push_back(std::move(small_.front()));
    small_.pop_front();
  }
  if (!batch.empty()) return true;
  --pack_jobs_;
  return false;
}

wire::PackedFile Sender::read_small(const wire::FileRequest& request, base::MutBytes room) {
  wire::PackedFile packed;
  packed.req = request.req;
  const auto failed = [&](const Error& error) {
    packed.result =
        error.os_errno == ENOENT ? wire::FileResult::kVanished : wire::FileResult::kError;
    packed.os_errno = error.os_errno;
    packed.text = error.context;
    packed.length = 0;
    if (packed.result == wire::FileResult::kError) parts_.tally.source_errors.fetch_add(1);
    return packed;
  };
  for (int attempt = 0; attempt < kChangeRetries; ++attempt) {
    auto opened = parts_.source.open_file(request.dir, request.index);
    if (!opened) {
      if (opened.error().code == Code::kProtocol) protocol_error(opened.error());
      return failed(opened.error());
    }
    const io::Metadata& before = opened->meta;
    std::size_t length = 0;
    if (before.size <= room.size()) {
      // No more than it had: what it has grown by shows in its metadata.
      auto got = io::read_full(opened->fd.get(), room.data(), before.size, 0);
      if (!got) return failed(got.error());
      length = *got;
      auto after = io::stat_fd(opened->fd.get());
      if (!after) return failed(after.error());
      if (!io::unchanged(before, *after) || length != before.size) continue;
    }
    const bool moved = before.size != request.size || before.mtime.seconds != request.mtime_s ||
                       before.mtime.nanoseconds != request.mtime_ns;
    if (moved) {
      auto meta = parts_.source.describe(opened->fd.get());
      if (!meta) return failed(meta.error());
      packed.has_meta = true;
      packed.meta = std::move(*meta);
    }
    if (before.size > room.size()) {  // grew out of this frame: ask again as a large file
      packed.result = wire::FileResult::kChanged;
      return packed;
    }
    const delta::Digest digest = parts_.hash.hash_range({room.data(), length}, false).digest;
    const bool compare = request.kind == wire::RequestKind::kDigest;
    const bool sparse = is_sparse(before);
    if (compare && equal(request.digest, digest)) {
      packed.result = wire::FileResult::kSame;
      packed.sparse = sparse;
    } else if ((request.flags & wire::kRequestCompareOnly) != 0) {
      packed.result = wire::FileResult::kDiffers;
    } else {
      packed.digest = to_wire(digest);
      packed.sparse = sparse;
      packed.length = static_cast<std::uint32_t>(length);
    }
    return packed;
  }
  packed.result = wire::FileResult::kChanged;
  packed.text = "kept changing while it was read";
  return packed;
}

void Sender::pack_job(Worker& worker) {
  std::vector<wire::FileRequest> batch;
  while (!parts_.tally.stopped() && take_small(batch)) {
    auto acquired = parts_.pool.acquire();
    if (!acquired) return;
    base::Buffer body = std::move(*acquired);
    wire::Pack pack;
    std::size_t used = 0;
    for (const wire::FileRequest& request : batch) {
      std::uint8_t* scratch = worker.scratch(kPackFileBytes);
      wire::PackedFile file = read_small(request, {scratch, kPackFileBytes});
      if (file.length > body.capacity() - used) {  // grew within the small size: its own retry
        file.result = wire::FileResult::kChanged;
        file.length = 0;
      }
      if (file.length > 0) std::memcpy(body.data() + used, scratch, file.length);
      used += file.length;
      pack.files.push_back(std::move(file));
    }
    batch.clear();
    body.set_size(used);
    pack.raw_bytes = static_cast<std::uint32_t>(used);
    if (used <= wire::kHeapBodyBytes) body = base::Buffer::copy_of(body.bytes());
    parts_.coder.observe_link(parts_.channel.stats());
    pack.compressed = parts_.coder.compress(body);
    if (!parts_.channel.send(wire::make_frame(pack, std::move(body)))) return;
  }
}

}  // namespace volferry::session
