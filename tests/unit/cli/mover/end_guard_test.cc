// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/end_guard.h"

#include <gtest/gtest.h>

namespace volferry::cli::mover {
namespace {

TEST(EndGuard, EndsARunAfterItsTime) {
  StopFlag stop{0};
  const EndGuard guard(stop, std::chrono::milliseconds(1),
                       [](bool) { FAIL() << "not overdue yet"; });
  const auto deadline = std::chrono::steady_clock::now() + EndGuard::kGrace;
  while (stop.load() == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(stop.load(), 143);
  // The flag is set first.
  while (!guard.timed_out() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(guard.timed_out());
}

TEST(EndGuard, ASignalThatCameFirstWins) {
  StopFlag stop{130};
  {
    const EndGuard guard(stop, std::chrono::milliseconds(1),
                         [](bool) { FAIL() << "not overdue yet"; });
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    EXPECT_FALSE(guard.timed_out());
  }
  EXPECT_EQ(stop.load(), 130);
}

TEST(EndGuard, CallsWhereTheRunDoesNotEnd) {
  StopFlag stop{0};
  std::atomic<bool> called{false};
  const EndGuard guard(stop, std::chrono::milliseconds(0),
                       [&](bool timed_out) { called = !timed_out; });
  stop = 143;
  const auto begin = std::chrono::steady_clock::now();
  while (!called && std::chrono::steady_clock::now() < begin + 2 * EndGuard::kGrace)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(called);
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            EndGuard::kGrace - std::chrono::milliseconds(200));
  EXPECT_FALSE(guard.timed_out());
}

}  // namespace
}  // namespace volferry::cli::mover
