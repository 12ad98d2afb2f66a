// SPDX-License-Identifier: Apache-2.0
// The writing thread of a connection. It gathers small frames into one write of up to kBatchBytes,
// control frames first, then list and data frames in turns. A large frame ends a batch, so that a
// control frame never waits for more than one batch.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "engine/transport/internal/channel_impl.h"
#include "engine/transport/internal/refusal.h"

namespace volferry::transport {

namespace {

constexpr std::size_t kBatchBytes = 256 << 10;
// Bodies up to this are copied behind their heads: cheaper than a TLS record of their own.
constexpr std::size_t kCopiedBody = 16 << 10;
constexpr std::chrono::milliseconds kMaxPingInterval{5000};

// Often enough for the peer's timeout too, which is not known here.
std::chrono::milliseconds ping_interval(std::chrono::milliseconds idle_timeout) {
  if (idle_timeout.count() == 0) return kMaxPingInterval;
  return std::clamp(idle_timeout / 3, std::chrono::milliseconds{1}, kMaxPingInterval);
}

wire::Frame bare_frame(wire::MessageType type) {
  wire::Frame frame;
  frame.type = type;
  return frame;
}

// Frames laid out as pieces: headers, heads and small bodies in one block, large bodies where they
// are.
class Layout {
 public:
  Layout(const std::vector<wire::Frame>& frames, std::uint16_t stream, bool checksum) {
    block_.resize(block_bytes(frames));
    std::size_t begin = 0;
    std::size_t end = 0;
    for (const wire::Frame& frame : frames) {
      end = put_head(frame, stream, checksum, end);
      const base::Bytes body = frame.body.bytes();
      if (body.size() <= kCopiedBody) {
        end = put(body, end);
        continue;
      }
      pieces_.push_back(base::Bytes(block_).subspan(begin, end - begin));
      pieces_.push_back(body);
      begin = end;
    }
    if (end > begin) pieces_.push_back(base::Bytes(block_).subspan(begin, end - begin));
  }
  std::vector<base::Bytes> pieces() const { return pieces_; }

 private:
  static std::size_t block_bytes(const std::vector<wire::Frame>& frames) {
    std::size_t total = 0;
    for (const wire::Frame& frame : frames) {
      total += wire::kFrameHeaderBytes + frame.head.size();
      if (frame.body.size() <= kCopiedBody) total += frame.body.size();
    }
    return total;
  }

  std::size_t put(base::Bytes bytes, std::size_t at) {
    std::copy(bytes.begin(), bytes.end(), block_.begin() + static_cast<std::ptrdiff_t>(at));
    return at + bytes.size();
  }

  std::size_t put_head(const wire::Frame& frame, std::uint16_t stream, bool checksum,
                       std::size_t at) {
    wire::FrameHeader header{static_cast<std::uint8_t>(frame.type),
                             frame.flags,
                             stream,
                             static_cast<std::uint32_t>(frame.head.size()),
                             static_cast<std::uint32_t>(frame.body.size()),
                             0};
    if (checksum) header.checksum = wire::frame_checksum(frame.head, frame.body.bytes());
    wire::encode_header(header, base::MutBytes(block_).subspan(at));
    return put(frame.head, at + wire::kFrameHeaderBytes);
  }

  std::vector<std::uint8_t> block_;
  std::vector<base::Bytes> pieces_;
};

// Signals are the program's business: they are taken by its own threads.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

bool ChannelImpl::has_work_locked(const Connection& connection) const {
  if (connection.greeting || !connection.data.frames.empty()) return true;
  if (connection.index != 0) return false;
  return !control_.frames.empty() || !list_.frames.empty() || receive_list_.should_return() ||
         receive_data_.should_return();
}

ChannelImpl::Batch ChannelImpl::next_batch(Connection& connection) {
  std::unique_lock lock(mutex_);
  const auto waited_for = [&] { return reason_ || finishing_ || has_work_locked(connection); };
  const bool woken =
      connection.work.wait_for(lock, ping_interval(options_.idle_timeout), waited_for);
  if (reason_ && !refusing_) return {Task::kExit, {}};
  if (reason_) return {connection.index == 0 ? Task::kRefuse : Task::kAwaitRefusal, {}};
  if (!woken) return {Task::kPing, {}};
  if (!has_work_locked(connection)) return {Task::kGoodbye, {}};
  Batch batch{Task::kWrite, {}};
  collect_locked(connection, batch);
  lock.unlock();
  room_.notify_all();
  return batch;
}

void ChannelImpl::collect_locked(Connection& connection, Batch& batch) {
  std::size_t bytes = 0;
  const auto take_from = [&](FrameQueue& queue) {
    batch.frames.push_back(queue.pop());
    const wire::Frame& frame = batch.frames.back();
    bytes += wire::kFrameHeaderBytes + frame.head.size() + frame.body.size();
  };
  if (connection.greeting)
    batch.frames.push_back(*std::exchange(connection.greeting, std::nullopt));
  const bool first = connection.index == 0;
  if (first && (receive_list_.should_return() || receive_data_.should_return())) {
    const wire::Credit credit{receive_list_.take_due(), receive_data_.take_due()};
    batch.frames.push_back(wire::make_frame(credit));
  }
  while (first && !control_.frames.empty() && bytes < kBatchBytes) take_from(control_);
  while (bytes < kBatchBytes) {
    const bool list = first && !list_.frames.empty();
    const bool data = !connection.data.frames.empty();
    if (!list && !data) return;
    connection.list_turn = list && (!data || !connection.list_turn);
    take_from(connection.list_turn ? list_ : connection.data);
  }
}

Status ChannelImpl::write_frames(Connection& connection, std::vector<wire::Frame> frames) {
  const Layout layout(frames, connection.index, !connection.link->has_integrity());
  std::shared_ptr<base::RateLimiter> limiter;
  {
    const std::lock_guard lock(mutex_);
    limiter = limiter_;
  }
  const std::uint64_t before = connection.link->bytes_sent();
  const auto begin = Clock::now();
  VF_TRY(limiter ? write_limited(connection, *limiter, layout.pieces())
                 : connection.link->write(layout.pieces(), {.moving_deadline = &refuse_deadline_}));
  look_whether_busy(connection);
  const std::lock_guard lock(mutex_);
  connection.written += connection.link->bytes_sent() - before;
  connection.writing += Clock::now() - begin;
  return {};
}

Status ChannelImpl::write_limited(Connection& connection, base::RateLimiter& limiter,
                                  std::vector<base::Bytes> pieces) {
  const std::size_t slice = limiter.slice();
  for (base::Bytes piece : pieces) {
    while (!piece.empty()) {
      const base::Bytes part = piece.first(std::min(slice, piece.size()));
      piece = piece.subspan(part.size());
      const Clock::duration delay = limiter.take(part.size());
      if (delay > Clock::duration::zero()) {
        const Wait pause{.deadline = Clock::now() + delay, .moving_deadline = &refuse_deadline_};
        const Status waited = wait_for(-1, 0, connection.link->stop_event(), pause);
        if (!waited && waited.error().code != Code::kTimeout) return waited;
      }
      VF_TRY(connection.link->write({&part, 1}, {.moving_deadline = &refuse_deadline_}));
    }
  }
  return {};
}

// Before: over by `abort`. After: this connection's reader has seen the peer close, or time is up;
// all links stopped.
void ChannelImpl::refuse_and_close(Connection& connection) {
  std::unique_lock lock(mutex_);
  std::vector<wire::Frame> frames;
  frames.push_back(make_refusal(*reason_));
  lock.unlock();
  const Layout layout(frames, connection.index, !connection.link->has_integrity());
  const Clock::time_point deadline = refuse_deadline_;
  if (connection.link->write(layout.pieces(), {.deadline = deadline})) {
    connection.link->end_writing();
    lock.lock();
    ended_.wait_until(lock, deadline, [&] { return connection.reader_done; });
    lock.unlock();
  }
  lock.lock();
  stop_links_locked();
}

// The peer must not see a connection end before it has read why.
void ChannelImpl::await_refusal() {
  std::unique_lock lock(mutex_);
  ended_.wait_until(lock, refuse_deadline_.load(),
                    [&] { return connections_.front()->writer_done; });
}

void ChannelImpl::write_loop(Connection& connection) {
  block_signals();
  for (bool going = true; going;) {
    Batch batch = next_batch(connection);
    Status status;
    switch (batch.task) {
      case Task::kWrite:
        status = write_frames(connection, std::move(batch.frames));
        break;
      case Task::kPing:
        batch.frames.push_back(bare_frame(wire::MessageType::kPing));
        status = write_frames(connection, std::move(batch.frames));
        break;
      case Task::kGoodbye:
        batch.frames.push_back(bare_frame(wire::MessageType::kGoodbye));
        status = write_frames(connection, std::move(batch.frames));
        going = false;
        break;
      case Task::kRefuse:
        refuse_and_close(connection);
        going = false;
        break;
      case Task::kAwaitRefusal:
        await_refusal();
        going = false;
        break;
      case Task::kExit:
        going = false;
        break;
    }
    if (status) continue;
    // An interrupted frame leaves the peer in the middle of it: a refusal behind it could not be
    // read.
    fail(status.error());
    if (connection.index == 0) {
      const std::lock_guard lock(mutex_);
      stop_links_locked();
    }
    going = false;
  }
  // Also where the channel failed: the peer then sees the end at once and not when this object
  // goes.
  connection.link->end_writing();
  const std::lock_guard lock(mutex_);
  connection.writer_done = true;
  ended_.notify_all();
}

}  // namespace volferry::transport
