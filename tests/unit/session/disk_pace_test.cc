// SPDX-License-Identifier: Apache-2.0
#include "engine/session/disk_pace.h"

#include <gtest/gtest.h>

namespace volferry::session {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = 1 << 20;

class DiskPaceTest : public testing::Test {
 protected:
  // `count` times 1 MiB, `depth` in flight, one done each `each`.
  void write(DiskPace& pace, int count, std::chrono::nanoseconds each, int depth = 1) {
    for (int i = 0; i < count; i += depth) {
      for (int k = 0; k < depth; ++k) pace.begin(now_);
      for (int k = 0; k < depth; ++k) pace.end(kMiB, now_ += each);
    }
  }
  void pause(std::chrono::nanoseconds time) { now_ += time; }

 private:
  DiskPace::Clock::time_point now_;
};

TEST_F(DiskPaceTest, AFastDiskIsWorthIt) {
  DiskPace pace(false);
  write(pace, 1024, milliseconds(1));  // 1 GB/s
  write(pace, 1024, milliseconds(1), 16);
  EXPECT_TRUE(pace.worth_it());
}

TEST_F(DiskPaceTest, ASlowDiskIsLeftToThePageCache) {
  DiskPace pace(false);
  write(pace, 63, milliseconds(10));  // 100 MB/s
  EXPECT_TRUE(pace.worth_it());       // too little to judge
  write(pace, 1, milliseconds(10));
  EXPECT_FALSE(pace.worth_it());
}

TEST_F(DiskPaceTest, ADiskThatBecomesSlow) {
  DiskPace pace(false);
  write(pace, 1024, milliseconds(1), 16);
  write(pace, 64, milliseconds(10), 16);
  EXPECT_FALSE(pace.worth_it());
}

TEST_F(DiskPaceTest, ADurableRunWaitsForTheDiskAnyway) {
  DiskPace pace(true);
  write(pace, 1024, milliseconds(100));
  EXPECT_TRUE(pace.worth_it());
}

TEST_F(DiskPaceTest, ASlowPeerIsNoSlowDisk) {
  DiskPace pace(false);
  for (int i = 0; i < 128; ++i) {
    write(pace, 1, milliseconds(1));
    pause(milliseconds(100));
  }
  EXPECT_TRUE(pace.worth_it());
}

TEST_F(DiskPaceTest, OneSlowWriteAmongMany) {
  DiskPace pace(false);
  write(pace, 20, milliseconds(1));
  write(pace, 1, milliseconds(50));
  write(pace, 43, milliseconds(1));
  EXPECT_TRUE(pace.worth_it());
}

}  // namespace
}  // namespace volferry::session
