// SPDX-License-Identifier: Apache-2.0
// What the mover is doing right now, written by the engine's observer and read by the HTTP
// endpoint.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "cli/progress.h"

namespace volferry::cli::mover {

// Thread-safe.
class LiveState {
 public:
  // A session that has not got any further for that long is stuck. A file system may take minutes
  // to flush what was written; the connection's own timeout finds a silent peer much earlier.
  static constexpr std::chrono::minutes kStuck{10};

  explicit LiveState(Clock clock) : clock_(std::move(clock)) {}

  // Sums over all sessions of this process: lost ones and failed ones count too.
  struct Totals {
    ProgressSnapshot now;  // of the session that runs or ran last
    std::uint64_t literal_bytes = 0;
    std::uint64_t matched_bytes = 0;
    std::uint64_t zero_bytes = 0;
    std::uint64_t wire_sent = 0;
    std::uint64_t wire_received = 0;
    std::uint64_t sessions = 0;
  };

  // A peer has been accepted; what follows counts anew for progress.
  void begin_session();
  void end_session();
  // A peer was refused, which is remembered until another one is accepted.
  void refuse(const Error& error);
  void accept();
  void update(const ProgressSnapshot& snapshot);

  Totals totals() const;
  // The progress event; nothing before the first.
  std::optional<std::string> progress() const;
  // Why the last peer was refused; nothing where it was accepted, or none came.
  std::optional<Error> refusal() const;
  // False where a session is stuck.
  bool healthy() const;

 private:
  void add_counters(Totals& totals) const;

  Clock clock_;
  mutable std::mutex mutex_;
  ProgressMeter meter_;
  bool seen_ = false;
  bool in_session_ = false;
  std::optional<Error> refused_;
  TimePoint changed_{};
  Totals before_;  // of the sessions that are over
};

}  // namespace volferry::cli::mover
