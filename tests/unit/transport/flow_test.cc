// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/flow.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/transport/wire/limits.h"

namespace volferry::transport {
namespace {

TEST(SendWindow, AdmitsWhatFitsAndOneLargerFrameAlone) {
  SendWindow window;
  window.open(1000);
  EXPECT_TRUE(window.admits(5000));
  window.spend(600);
  EXPECT_TRUE(window.admits(400));
  EXPECT_FALSE(window.admits(401));
  EXPECT_TRUE(window.give_back(600));
  window.spend(5000);
  EXPECT_FALSE(window.admits(1));
  EXPECT_TRUE(window.give_back(5000));
  EXPECT_TRUE(window.admits(5000));
}

TEST(SendWindow, NoticesInventedCredit) {
  SendWindow window;
  window.open(1000);
  window.spend(10);
  EXPECT_FALSE(window.give_back(11));
}

TEST(ReceiveWindow, RefusesWhatHasNoCredit) {
  ReceiveWindow window;
  window.open(1000);
  EXPECT_TRUE(window.receive(600));
  EXPECT_FALSE(window.receive(401));
  EXPECT_TRUE(window.receive(400));
  EXPECT_FALSE(window.consume(1001));
}

TEST(ReceiveWindow, ReturnsInBatches) {
  ReceiveWindow window;
  window.open(64 << 20);
  EXPECT_TRUE(window.receive(4 << 20));
  EXPECT_TRUE(window.receive(4 << 20));
  EXPECT_TRUE(window.consume(4 << 20));
  EXPECT_FALSE(window.should_return());
  EXPECT_TRUE(window.consume(4 << 20));
  EXPECT_TRUE(window.should_return());
  EXPECT_EQ(window.take_due(), 8u << 20);
  EXPECT_FALSE(window.should_return());
}

// Whatever the window and the frames are, a sender that waits while the receiver has consumed
// everything must get credit: otherwise both would wait for good.
TEST(Windows, NeverStallOnceAllIsConsumed) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    SendWindow send;
    ReceiveWindow receive;
    const std::uint64_t size = random() % (16u << 20);
    send.open(size);
    receive.open(size);
    std::vector<std::uint64_t> held;
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t charge = wire::kFrameCharge + random() % (11u << 20);
      if (send.admits(charge)) {
        send.spend(charge);
        ASSERT_TRUE(receive.receive(charge));
        held.push_back(charge);
        continue;
      }
      // The sender waits: the receiver consumes everything.
      for (const std::uint64_t each : held) ASSERT_TRUE(receive.consume(each));
      held.clear();
      if (receive.should_return()) {
        ASSERT_TRUE(send.give_back(receive.take_due()));
      }
      ASSERT_TRUE(send.admits(charge)) << "window " << size << " charge " << charge;
    }
  }
}

}  // namespace
}  // namespace volferry::transport
