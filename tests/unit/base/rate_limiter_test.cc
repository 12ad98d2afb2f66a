// SPDX-License-Identifier: Apache-2.0
#include "engine/base/rate_limiter.h"

#include <gtest/gtest.h>

namespace volferry::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Clock = RateLimiter::Clock;

class RateLimiterTest : public ::testing::Test {
 protected:
  Clock::time_point now_{};
  RateLimiter::Now clock() {
    return [this] { return now_; };
  }
  static double seconds_of(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }
};

TEST_F(RateLimiterTest, BurstIsFreeThenTheRateHolds) {
  RateLimiter limiter(10'000'000, clock());
  EXPECT_EQ(limiter.take(500'000), Clock::duration::zero());  // a twentieth of a second
  EXPECT_NEAR(seconds_of(limiter.take(1'000'000)), 0.1, 1e-6);
  EXPECT_NEAR(seconds_of(limiter.take(1'000'000)), 0.2, 1e-6);
  now_ += milliseconds(200);
  EXPECT_NEAR(seconds_of(limiter.take(1'000'000)), 0.1, 1e-6);
}

TEST_F(RateLimiterTest, IdleTimeBuysNoMoreThanTheBurst) {
  RateLimiter limiter(1'000'000, clock());
  now_ += seconds(100);
  EXPECT_EQ(limiter.take(65536), Clock::duration::zero());
  EXPECT_GT(limiter.take(1), Clock::duration::zero());
}

TEST_F(RateLimiterTest, LongRunKeepsTheRate) {
  RateLimiter limiter(1'000'000, clock());
  const std::size_t slice = limiter.slice();
  std::uint64_t sent = 0;
  const Clock::time_point begin = now_;
  for (int i = 0; i < 1000; ++i) {
    now_ += limiter.take(slice);
    sent += slice;
  }
  const double elapsed = seconds_of(now_ - begin);
  EXPECT_NEAR(static_cast<double>(sent) / elapsed, 1'000'000, 10'000);
}

TEST_F(RateLimiterTest, SlowRatesStillMove) {
  RateLimiter limiter(1, clock());
  EXPECT_GT(limiter.slice(), 0u);
  EXPECT_EQ(limiter.take(65536), Clock::duration::zero());
  EXPECT_NEAR(seconds_of(limiter.take(3)), 3, 1e-6);
}

}  // namespace
}  // namespace volferry::base
