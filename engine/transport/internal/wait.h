// SPDX-License-Identifier: Apache-2.0
// Waiting for descriptors with a deadline and a stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "engine/base/error.h"
#include "engine/base/unique_fd.h"

namespace volferry::transport {

using Clock = std::chrono::steady_clock;

// How long a call may wait, and what ends it before that. The referenced atomics outlive the call.
struct Wait {
  Clock::time_point deadline = Clock::time_point::max();
  const std::atomic<bool>* cancel = nullptr;  // looked at every kWaitSlice
  const std::atomic<Clock::time_point>* moving_deadline =
      nullptr;  // the same; may only move nearer
};

// How late a `cancel` or a moved deadline may be noticed. Only waits that carry one wake this
// often.
inline constexpr std::chrono::milliseconds kWaitSlice{50};

// A flag that poll(2) sees. Any thread may set it; it stays set.
class StopEvent {
 public:
  StopEvent();
  void set();
  bool is_set() const { return set_.load(std::memory_order_acquire); }
  int fd() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
  std::atomic<bool> set_{false};
};

// Waits until poll(2) reports any of `events`, an error or a hang-up on `fd` (-1: until a deadline
// or stop only). kTimeout past a deadline; kCancelled after `stop` or `cancel`.
Status wait_for(int fd, short events, const StopEvent& stop, const Wait& wait);

}  // namespace volferry::transport
