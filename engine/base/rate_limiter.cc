// SPDX-License-Identifier: Apache-2.0
#include "engine/base/rate_limiter.h"

#include <algorithm>

#include "engine/base/check.h"

namespace volferry::base {

namespace {
constexpr double kMinBurst = 64 << 10;
constexpr double kBurstsPerSecond = 20;
constexpr std::size_t kMaxSlice = 256 << 10;
}  // namespace

RateLimiter::RateLimiter(std::uint64_t bytes_per_second, Now now)
    : rate_(static_cast<double>(bytes_per_second)),
      burst_(std::max(kMinBurst, rate_ / kBurstsPerSecond)),
      now_(std::move(now)),
      tokens_(burst_),
      filled_(now_()) {
  VF_CHECK(bytes_per_second > 0, "a rate of 0 means no limiter");
}

RateLimiter::Clock::duration RateLimiter::take(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = now_();
  const double passed = std::chrono::duration<double>(now - filled_).count();
  tokens_ = std::min(burst_, tokens_ + passed * rate_) - static_cast<double>(bytes);
  filled_ = now;
  if (tokens_ >= 0) return Clock::duration::zero();
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(-tokens_ / rate_));
}

std::size_t RateLimiter::slice() const {
  return std::min(kMaxSlice, static_cast<std::size_t>(burst_) / 2);
}

}  // namespace volferry::base
