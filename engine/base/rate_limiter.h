// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

namespace volferry::base {

// A token bucket that several threads share. Takers go into debt and wait it off, so
// that turns are given in order and no taker starves. Thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  // `bytes_per_second` > 0. The bucket holds max(64 KiB, a twentieth of a second).
  explicit RateLimiter(std::uint64_t bytes_per_second, Now now = &Clock::now);

  // Takes `bytes` and returns how long the caller must wait before it sends them.
  Clock::duration take(std::uint64_t bytes);
  // The most that should be taken at once, so that the flow stays even.
  std::size_t slice() const;

 private:
  const double rate_;
  const double burst_;
  const Now now_;
  std::mutex mutex_;
  double tokens_;
  Clock::time_point filled_;
};

}  // namespace volferry::base
