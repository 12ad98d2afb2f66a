// SPDX-License-Identifier: Apache-2.0
// The channel's insides, shared by the parts that set one up. channel.cc has the public calls,
// channel_reader.cc and channel_writer.cc the two threads of each connection.
//
// One mutex guards everything that is not marked otherwise; it is never held over a read, a write
// or a handler's call. Life: open -> finishing (finish was called: queues drain, then Goodbye) ->
// over, or open -> over where `reason_` is set. After `abort` the first writer still sends the
// refusal, and its reader takes what comes until the peer closes: closing a socket with unread
// bytes would reset the connection and could destroy the refusal on its way.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/rate_limiter.h"
#include "engine/transport/channel.h"
#include "engine/transport/internal/flow.h"
#include "engine/transport/internal/frame_reader.h"
#include "engine/transport/internal/link.h"

namespace volferry::transport {

// What the handshake found out.
struct PeerInfo {
  std::string agent;
  std::vector<std::uint8_t> identity;
  std::uint64_t list_credit = 0;  // granted to us
  std::uint64_t data_credit = 0;
};

class ChannelImpl : public Channel {
 public:
  // `greeting`: the first frame to the peer, if there is one.
  ChannelImpl(std::unique_ptr<Link> first, PeerInfo peer, const ChannelOptions& options,
              std::optional<wire::Frame> greeting = std::nullopt);
  ~ChannelImpl() override;

  // Adds a connection with its own greeting. `most`: connections that the channel
  // may have. Fails with kProtocol where it has as many, kCancelled where it is over; `link` then
  // stays with the caller. Any thread.
  Status add_link(std::unique_ptr<Link>& link, unsigned most, std::optional<wire::Frame> greeting);
  // Called first thing in the destructor. Set before other threads know of the channel.
  void set_before_end(std::function<void()> before_end) { before_end_ = std::move(before_end); }
  // Called once, from a thread of a connection, when one has moved kBusyBytes. Must not wait. Set
  // before `start`.
  void set_when_busy(std::function<void()> when_busy) {
    when_busy_ = std::move(when_busy);
    awaits_busy_.store(true);
  }

  void start(ChannelHandler& handler) override;
  Status send(wire::Frame frame, std::optional<std::uint32_t> stream_hint) override;
  void consumed(wire::FrameClass frame_class, std::uint64_t charge) override;
  void end_sending() override;
  Status finish(std::chrono::milliseconds patience) override;
  void abort(const Error& reason) override;
  void limit_bandwidth(std::uint64_t bytes_per_second) override;
  ChannelStats stats() const override;
  const std::string& peer_agent() const override { return peer_.agent; }
  const std::vector<std::uint8_t>& peer_identity() const override { return peer_.identity; }
  std::optional<std::chrono::microseconds> round_trip() const override;

 private:
  struct FrameQueue {
    std::deque<wire::Frame> frames;
    std::uint64_t bytes = 0;
    void push(wire::Frame frame);
    wire::Frame pop();
    void clear();
  };
  struct Connection {
    std::uint16_t index = 0;
    std::unique_ptr<Link> link;
    std::optional<wire::Frame> greeting;  // goes out before all else: the peer may have sent its
                                          // first request already
    FrameQueue data;
    bool reader_done = false;  // or never started
    bool writer_done = false;
    bool list_turn = false;     // writer's: list and data take turns
    std::uint64_t written = 0;  // see ChannelStats
    std::chrono::nanoseconds writing{0};
    std::condition_variable work;
    std::thread reader;
    std::thread writer;
  };
  enum class Task { kWrite, kPing, kRefuse, kAwaitRefusal, kGoodbye, kExit };
  struct Batch {
    Task task = Task::kExit;
    std::vector<wire::Frame> frames;
  };

  // channel.cc; `lock` or "locked" means that the caller holds the mutex.
  void start_reader_locked(Connection& connection);
  void fail(const Error& reason);
  void end_sending_locked();
  void set_over_locked(const Error& reason);
  void stop_links_locked();
  Status reason_locked() const;
  Status send_control_locked(wire::Frame frame);
  Connection* roomiest_locked();
  Connection* data_target_locked(std::optional<std::uint32_t> hint);
  bool all_done_locked() const;

  // channel_writer.cc
  void write_loop(Connection& connection);
  Batch next_batch(Connection& connection);
  bool has_work_locked(const Connection& connection) const;
  void collect_locked(Connection& connection, Batch& batch);
  Status write_frames(Connection& connection, std::vector<wire::Frame> frames);
  Status write_limited(Connection& connection, base::RateLimiter& limiter,
                       std::vector<base::Bytes> pieces);
  void refuse_and_close(Connection& connection);
  void await_refusal();

  // channel_reader.cc
  void read_loop(Connection& connection);
  Status read_frames(Connection& connection);
  Status admit(const wire::FrameHeader& header);
  Status take(Connection& connection, wire::Frame frame, bool& goodbye);
  Status take_credit(const wire::Frame& frame);
  Wait read_wait() const;
  void reader_ended(Connection& connection, Status status);

  // Any thread of a connection, without the lock.
  void look_whether_busy(const Connection& connection);

  std::function<void()> before_end_;
  std::function<void()> when_busy_;
  std::atomic<bool> awaits_busy_{false};  // when_busy_ may be read, by whoever clears this
  const ChannelOptions options_;
  const PeerInfo peer_;

  mutable std::mutex mutex_;
  std::condition_variable room_;   // senders wait for credit or queue room
  std::condition_variable ended_;  // finish and the refusing writer wait for threads
  std::vector<std::unique_ptr<Connection>>
      connections_;  // grows only; elements stay where they are
  FrameQueue control_;
  FrameQueue list_;
  SendWindow send_list_;
  SendWindow send_data_;
  ReceiveWindow receive_list_;
  ReceiveWindow receive_data_;
  std::optional<unsigned>
      hint_modulus_;  // fixed by the first hinted frame, so that equal hints keep their connection
  std::shared_ptr<base::RateLimiter> limiter_;  // null: none
  std::optional<Error> reason_;
  bool finishing_ = false;
  bool refusing_ = false;
  ChannelHandler* handler_ = nullptr;
  unsigned live_readers_ = 0;
  bool closed_reported_ = false;
  std::atomic<Clock::time_point> refuse_deadline_{Clock::time_point::max()};  // not guarded
};

}  // namespace volferry::transport
