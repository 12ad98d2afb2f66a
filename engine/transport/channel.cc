// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/channel.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/transport/internal/channel_impl.h"

namespace volferry::transport {

namespace {

// Control frames are few by design. More than this means that the peer has stopped reading.
constexpr std::uint64_t kMaxControlBytes = 64u << 20;
// Enough for the writer to always find the next frame while `send` pushes back early.
constexpr std::uint64_t kMaxQueuedBytes = 4u << 20;
constexpr std::size_t kMaxQueuedFrames = 256;

// How long an abort tries to tell the peer.
constexpr std::chrono::milliseconds kRefuseTime{1000};

// An orderly end has no reason, but a frame sent after it has to fail with something.
Error closed_error() { return {Code::kCancelled, 0, "the channel is closed"}; }

template <typename Queue>
bool has_room(const Queue& queue) {
  return queue.bytes < kMaxQueuedBytes && queue.frames.size() < kMaxQueuedFrames;
}

}  // namespace

void ChannelImpl::FrameQueue::push(wire::Frame frame) {
  bytes += frame.charge();
  frames.push_back(std::move(frame));
}

wire::Frame ChannelImpl::FrameQueue::pop() {
  wire::Frame frame = std::move(frames.front());
  frames.pop_front();
  bytes -= frame.charge();
  return frame;
}

void ChannelImpl::FrameQueue::clear() {
  frames.clear();
  bytes = 0;
}

ChannelImpl::ChannelImpl(std::unique_ptr<Link> first, PeerInfo peer, const ChannelOptions& options,
                         std::optional<wire::Frame> greeting)
    : options_(options), peer_(std::move(peer)) {
  limit_bandwidth(options.bandwidth_limit);
  send_list_.open(peer_.list_credit);
  send_data_.open(peer_.data_credit);
  receive_list_.open(options.list_credit);
  receive_data_.open(options.data_credit);
  const Status added = add_link(first, 1, std::move(greeting));
  VF_CHECK(added, "the first connection always fits");
}

void ChannelImpl::limit_bandwidth(std::uint64_t bytes_per_second) {
  const std::lock_guard lock(mutex_);
  limiter_ = bytes_per_second > 0 ? std::make_shared<base::RateLimiter>(bytes_per_second) : nullptr;
}

ChannelImpl::~ChannelImpl() {
  if (before_end_) before_end_();
  bool open = false;
  {
    const std::lock_guard lock(mutex_);
    open = !reason_ && !all_done_locked();
  }
  if (open) abort({Code::kConnectionLost, 0, "the session was given up"});
  // No connection is added once the channel is over, so the list can be walked without the lock.
  for (const auto& connection : connections_) {
    if (connection->writer.joinable()) connection->writer.join();
    connection->link->stop();
    if (connection->reader.joinable()) connection->reader.join();
  }
}

Status ChannelImpl::add_link(std::unique_ptr<Link>& link, unsigned most,
                             std::optional<wire::Frame> greeting) {
  const std::lock_guard lock(mutex_);
  const bool closed = handler_ != nullptr && live_readers_ == 0;  // and the handler told
  if (reason_ || finishing_ || closed) {
    return fail_with(Code::kCancelled, "the session is over");
  }
  if (connections_.size() >= most) {
    return fail_with(Code::kProtocol, "the session has all its connections");
  }
  Connection& connection = *connections_.emplace_back(std::make_unique<Connection>());
  connection.index = static_cast<std::uint16_t>(connections_.size() - 1);
  connection.link = std::move(link);
  connection.reader_done = handler_ == nullptr;
  connection.greeting = std::move(greeting);
  connection.writer = std::thread([this, &connection] { write_loop(connection); });
  if (handler_ != nullptr) start_reader_locked(connection);
  return {};
}

void ChannelImpl::look_whether_busy(const Connection& connection) {
  if (!awaits_busy_.load(std::memory_order_relaxed)) return;
  if (connection.link->bytes_sent() + connection.link->bytes_received() < kBusyBytes) return;
  if (awaits_busy_.exchange(false)) when_busy_();
}

void ChannelImpl::start(ChannelHandler& handler) {
  const std::lock_guard lock(mutex_);
  VF_CHECK(handler_ == nullptr, "a channel is started once");
  handler_ = &handler;
  for (const auto& connection : connections_) start_reader_locked(*connection);
}

void ChannelImpl::start_reader_locked(Connection& connection) {
  connection.reader_done = false;
  ++live_readers_;
  connection.reader = std::thread([this, &connection] { read_loop(connection); });
}

Status ChannelImpl::reason_locked() const {
  if (reason_) return std::unexpected(*reason_);
  return {};
}

bool ChannelImpl::all_done_locked() const {
  return std::ranges::all_of(connections_, [](const auto& connection) {
    return connection->reader_done && connection->writer_done;
  });
}

Status ChannelImpl::send(wire::Frame frame, std::optional<std::uint32_t> stream_hint) {
  const wire::FrameClass frame_class = wire::frame_class(frame.type);
  const bool bulk = frame_class == wire::FrameClass::kData;
  if (frame.head.size() > wire::kMaxHead || frame.body.size() > (bulk ? wire::kMaxBody : 0)) {
    return fail_with(Code::kInternal, "frame past the protocol's limits");
  }
  std::unique_lock lock(mutex_);
  if (frame_class == wire::FrameClass::kControl) return send_control_locked(std::move(frame));

  const std::uint64_t charge = frame.charge();
  SendWindow& window = bulk ? send_data_ : send_list_;
  Connection* target = nullptr;
  FrameQueue* queue = nullptr;
  const auto ready = [&] {
    if (reason_ || finishing_) return true;
    target = bulk ? data_target_locked(stream_hint) : connections_.front().get();
    queue = bulk ? &target->data : &list_;
    return window.admits(charge) && has_room(*queue);
  };
  room_.wait(lock, ready);
  VF_TRY(reason_locked());
  if (finishing_) return std::unexpected(closed_error());
  window.spend(charge);
  queue->push(std::move(frame));
  target->work.notify_one();
  return {};
}

Status ChannelImpl::send_control_locked(wire::Frame frame) {
  VF_TRY(reason_locked());
  if (finishing_) return std::unexpected(closed_error());
  if (control_.bytes + frame.charge() > kMaxControlBytes) {
    return fail_with(Code::kConnectionLost, "the peer has stopped reading control frames");
  }
  control_.push(std::move(frame));
  connections_.front()->work.notify_one();
  return {};
}

ChannelImpl::Connection* ChannelImpl::roomiest_locked() {
  return std::ranges::min_element(connections_, {}, [](const auto& c) { return c->data.bytes; })
      ->get();
}

ChannelImpl::Connection* ChannelImpl::data_target_locked(std::optional<std::uint32_t> hint) {
  if (!hint) return roomiest_locked();
  if (!hint_modulus_) hint_modulus_ = static_cast<unsigned>(connections_.size());
  return connections_[*hint % *hint_modulus_].get();
}

void ChannelImpl::consumed(wire::FrameClass frame_class, std::uint64_t charge) {
  if (frame_class == wire::FrameClass::kControl) return;
  const std::lock_guard lock(mutex_);
  ReceiveWindow& window = frame_class == wire::FrameClass::kData ? receive_data_ : receive_list_;
  VF_CHECK(window.consume(charge), "more consumed than was received");
  if (window.should_return()) connections_.front()->work.notify_one();
}

void ChannelImpl::end_sending() {
  const std::lock_guard lock(mutex_);
  end_sending_locked();
}

void ChannelImpl::end_sending_locked() {
  finishing_ = true;
  room_.notify_all();
  for (const auto& connection : connections_) connection->work.notify_one();
}

Status ChannelImpl::finish(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  VF_TRY(reason_locked());
  end_sending_locked();
  const bool done = ended_.wait_for(lock, patience, [&] { return reason_ || all_done_locked(); });
  VF_TRY(reason_locked());
  if (done) return {};
  const Error late{Code::kConnectionLost, 0, "the peer did not close the session in time"};
  set_over_locked(late);
  stop_links_locked();
  return std::unexpected(late);
}

void ChannelImpl::abort(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (reason_ || (finishing_ && all_done_locked())) return;
  refuse_deadline_ = Clock::now() + kRefuseTime;
  refusing_ = true;
  set_over_locked(reason);
}

void ChannelImpl::fail(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (!reason_) set_over_locked(reason);
  // A refusal on its way is not cut off by what ends the connection meanwhile.
  if (!refusing_) stop_links_locked();
}

// Queued frames are dropped at once: their buffers belong to pools that others may wait for.
void ChannelImpl::set_over_locked(const Error& reason) {
  reason_ = reason;
  control_.clear();
  list_.clear();
  for (const auto& connection : connections_) {
    connection->data.clear();
    connection->work.notify_one();
  }
  room_.notify_all();
  ended_.notify_all();
}

void ChannelImpl::stop_links_locked() {
  for (const auto& connection : connections_) connection->link->stop();
}

ChannelStats ChannelImpl::stats() const {
  const std::lock_guard lock(mutex_);
  ChannelStats stats;
  stats.streams = static_cast<unsigned>(connections_.size());
  for (const auto& connection : connections_) {
    stats.wire_sent += connection->link->bytes_sent();
    stats.wire_received += connection->link->bytes_received();
    stats.written += connection->written;
    stats.writing += connection->writing;
  }
  return stats;
}

std::optional<std::chrono::microseconds> ChannelImpl::round_trip() const {
  const std::lock_guard lock(mutex_);
  return connections_.front()->link->round_trip();
}

}  // namespace volferry::transport
