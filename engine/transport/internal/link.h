// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/transport/internal/wait.h"

namespace volferry::transport {

using JoinToken = std::array<std::uint8_t, 32>;
using SessionId = std::array<std::uint8_t, 16>;

// One connection as a pair of byte streams. One thread may read while another writes; `stop` and
// the getters may be called by any.
class Link {
 public:
  virtual ~Link() = default;
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Waits for 1 to out.size() bytes and returns how many; 0 at the end of the stream.
  // kConnectionLost where the connection broke, kAuth where the peer refused our key late,
  // kTimeout, kCancelled after `stop`.
  virtual Result<std::size_t> read(base::MutBytes out, const Wait& wait) = 0;
  // Writes all pieces, in as few system calls as it can.
  virtual Status write(std::span<const base::Bytes> pieces, const Wait& wait) = 0;
  // No more writes will come: the peer reads an end of stream. Best effort, does not wait for long.
  virtual void end_writing() = 0;

  // Whether damage on the way is detected below the frames.
  virtual bool has_integrity() const = 0;
  // A secret that only the two ends of this connection can know, bound to `session`.
  virtual Result<JoinToken> join_token(const SessionId& session) = 0;
  virtual std::optional<std::chrono::microseconds> round_trip() const = 0;

  // Ends every present and later wait with kCancelled.
  void stop() { stop_.set(); }
  const StopEvent& stop_event() const { return stop_; }
  std::uint64_t bytes_sent() const { return sent_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_received() const { return received_.load(std::memory_order_relaxed); }

 protected:
  void count_sent(std::size_t bytes) { sent_.fetch_add(bytes, std::memory_order_relaxed); }
  void count_received(std::size_t bytes) { received_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  StopEvent stop_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace volferry::transport
