// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace volferry::session {

// Whether direct writes are worth their wait. They cost no copy and no page of memory, so a disk
// that keeps up makes a run faster; but a run that need not be durable may leave a slow disk to the
// page cache and go on. Judged by what the disk does while it has something to do. Thread-safe.
class DiskPace {
 public:
  using Clock = std::chrono::steady_clock;

  // `durable`: the run has to wait for the disk anyway, so direct writes always are.
  explicit DiskPace(bool durable) : durable_(durable) {}

  bool worth_it() const { return worth_it_.load(std::memory_order_relaxed); }

  // Around each write.
  void begin(Clock::time_point now);
  void end(std::uint64_t bytes, Clock::time_point now);

 private:
  // A single write of 1 MiB at a time comes to 900 MB/s on a disk that writes 2.8 GB/s; SATA disks
  // and network volumes stay below this.
  static constexpr double kBytesPerSecond = 500e6;
  // Judged by this much at a time: the first writes of a run wait for space to be allocated, and a
  // disk of 100 MB/s costs a run that does not want to wait 0.6 s.
  static constexpr std::uint64_t kWindow = 64u << 20;

  const bool durable_;
  std::atomic<bool> worth_it_{true};
  std::mutex mutex_;
  unsigned in_flight_ = 0;
  Clock::time_point since_;    // the disk has had something to do, or the window began
  Clock::duration busy_{0};    // before that, in this window
  std::uint64_t written_ = 0;  // in this window
};

}  // namespace volferry::session
