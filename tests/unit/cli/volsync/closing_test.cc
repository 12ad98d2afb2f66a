// SPDX-License-Identifier: Apache-2.0
#include "cli/volsync/closing.h"

#include <gtest/gtest.h>

namespace volferry::cli::volsync {
namespace {

mover::Outcome outcome() {
  mover::Outcome outcome;
  outcome.summary.wire_sent = 3'000'000;
  outcome.summary.wire_received = 1'000'000;
  outcome.summary.bytes_total = 10'000'000;
  outcome.summary.elapsed_seconds = 1.6;
  return outcome;
}

TEST(VolsyncClosing, HasTheLinesThatTheOperatorKeeps) {
  EXPECT_EQ(closing_lines(outcome()),
            "sent 3000000 bytes  received 1000000 bytes  2500000.00 bytes/sec\n"
            "total size is 10000000  speedup is 2.50\n"
            "rsync completed in 2s\n");
}

TEST(VolsyncClosing, NamesTheOtherProgramForADevice) {
  mover::Outcome device = outcome();
  device.volume_mode = mover::VolumeMode::kBlock;
  EXPECT_TRUE(closing_lines(device).ends_with("\ndiskrsync completed in 2s\n"));
}

TEST(VolsyncClosing, AnEmptyRunDividesByNothing) {
  EXPECT_EQ(closing_lines({}),
            "sent 0 bytes  received 0 bytes  0.00 bytes/sec\n"
            "total size is 0  speedup is 0.00\n"
            "rsync completed in 0s\n");
}

TEST(VolsyncClosing, IsEmptyAfterAFailure) {
  mover::Outcome failed = outcome();
  failed.summary.fatal = Error{Code::kConnect, 0, "nobody there"};
  EXPECT_EQ(closing_lines(failed), "");
  mover::Outcome partial = outcome();
  partial.summary.error_count = 1;
  EXPECT_EQ(closing_lines(partial), "");
}

}  // namespace
}  // namespace volferry::cli::volsync
