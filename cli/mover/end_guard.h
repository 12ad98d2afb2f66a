// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/sync.h"

namespace volferry::cli::mover {

// Watches over the end of a run: sets the stop flag once the time for the run is up, and calls
// `overdue` where the run has not ended kGrace after the flag was set: a name lookup or a hung disk
// cannot be interrupted, and the pod would be killed without a word. Content is safe then too:
// every name is old or new.
class EndGuard {
 public:
  static constexpr std::chrono::seconds kGrace{7};

  // `limit` 0: none. `overdue` runs on the guard's thread and is told whether it was the limit that
  // ended the run.
  EndGuard(StopFlag& stop, std::chrono::milliseconds limit, std::function<void(bool)> overdue);
  ~EndGuard();
  EndGuard(const EndGuard&) = delete;
  EndGuard& operator=(const EndGuard&) = delete;

  // True if it was the limit that ended the run.
  bool timed_out() const { return timed_out_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  void run();

  StopFlag& stop_;
  const std::chrono::milliseconds limit_;
  const std::function<void(bool)> overdue_;
  std::atomic<bool> timed_out_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace volferry::cli::mover
