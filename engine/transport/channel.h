// SPDX-License-Identifier: Apache-2.0
// A channel: the framed, flow-controlled conversation of one session with the peer, over one or
// more connections.
//
// Each connection has one reader thread and one writer thread, so no side ever writes without a
// reader being serviced. Writers take control frames before list and data frames. List and data
// frames wait for the credit that the peer has granted, so a reader never has to wait for room and
// control frames never queue behind data that nobody takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/transport/wire/frame.h"

namespace volferry::transport {

// Called by reader threads, one call at a time for each connection but concurrently for several
// connections. A handler must return promptly and never wait for the peer: it hands the frame on to
// a queue whose room the credit guarantees.
class ChannelHandler {
 public:
  virtual ~ChannelHandler() = default;
  virtual void on_frame(wire::Frame frame) = 0;
  // Once, after the last on_frame: the channel is over. `reason` holds no error after a clean end
  // (Goodbye from the peer).
  virtual void on_closed(Status reason) = 0;
};

struct ChannelStats {
  std::uint64_t wire_sent =
      0;  // bytes handed to sockets or pipes by this end, cipher overhead included
  std::uint64_t wire_received = 0;
  unsigned streams = 1;
  // Bytes of the writes that have ended, and how long those took, waiting for room included, added
  // up over the streams. Together they tell how fast the link is even where little is sent over it.
  std::uint64_t written = 0;
  std::chrono::nanoseconds writing{0};
};

class Channel {
 public:
  virtual ~Channel() = default;  // aborts if still open; joins all threads

  // Starts reading. Frames that came before are kept for the handler, which outlives the channel or
  // its `close`.
  virtual void start(ChannelHandler& handler) = 0;

  // Queues a frame. Control frames return at once; list and data frames wait for credit and queue
  // room. Fails once the channel is over, with the reason. `stream_hint`: data frames with equal
  // hints keep their order (same connection); without one they go where there is room.
  virtual Status send(wire::Frame frame,
                      std::optional<std::uint32_t> stream_hint = std::nullopt) = 0;

  // The handler is done with a list or data frame of this charge: the peer may send as much again.
  virtual void consumed(wire::FrameClass frame_class, std::uint64_t charge) = 0;

  // Sends what is queued, then Goodbye; later sends fail. What the peer sends is still received.
  virtual void end_sending() = 0;
  // end_sending, and waits (at most `patience`) until the peer has closed
  // too.
  virtual Status finish(std::chrono::milliseconds patience) = 0;
  // Tells the peer why (best effort, short), then ends everything; later sends fail with `reason`.
  // Any thread.
  virtual void abort(const Error& reason) = 0;

  // From now on this end sends at most that many bytes a second over all its connections; 0: no
  // limit. Any thread.
  virtual void limit_bandwidth(std::uint64_t bytes_per_second) = 0;

  virtual ChannelStats stats() const = 0;
  // The peer's opaque identity tuple and agent text from the handshake.
  virtual const std::string& peer_agent() const = 0;
  virtual const std::vector<std::uint8_t>& peer_identity() const = 0;
  // Smoothed round-trip time of the first connection, if the transport knows one.
  virtual std::optional<std::chrono::microseconds> round_trip() const = 0;
};

// Moved by a session before connections join it in the background. One connection moves this in 4
// ms where nothing slows it down, about as long as it takes to open another.
inline constexpr std::uint64_t kBusyBytes = 4u << 20;

struct ChannelOptions {
  base::Logger* logger = nullptr;        // outlives the channel
  std::uint64_t list_credit = 4u << 20;  // granted to the peer at the start
  std::uint64_t data_credit = 64u << 20;
  base::BufferPool* receive_pool =
      nullptr;  // slots >= data_credit / 1 MiB + streams; slot_bytes >= kMaxBody
  unsigned streams = 1;
  // TLS client: this many once the session has proved busy, by kBusyBytes; the further ones join in
  // the background. Encrypting or decrypting takes one core a connection.
  unsigned busy_streams = 0;
  std::uint64_t bandwidth_limit =
      0;  // bytes a second over all streams, of what this end sends; 0: none
  std::chrono::milliseconds idle_timeout{60'000};  // no byte from the peer, pings included; 0: none
  std::chrono::milliseconds connect_timeout{10'000};  // TCP and TLS handshake together
  std::vector<std::uint8_t> identity;  // sent in the handshake; at most wire::kMaxIdentity bytes
  std::string agent = "volferry";      // the same: who we are, for the peer's log
  // Client: sent right behind Hello, which saves a round trip; null: nothing. Only for what may be
  // said before the peer's answer is known, and with a head of at most wire::kMaxHelloHead.
  // Outlives the connecting.
  const wire::Frame* opening = nullptr;
};

}  // namespace volferry::transport
