// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace volferry::cli {
namespace {

TEST(StopSignals, EachSignalSetsItsExitCode) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 143}}) {
    StopFlag stop{0};
    const StopSignals signals(stop);
    ASSERT_EQ(raise(signal), 0);
    EXPECT_EQ(stop.load(), code);
  }
}

TEST(StopSignalsDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopFlag stop{0};
        const StopSignals signals(stop);
        raise(SIGTERM);
        raise(SIGINT);
        std::exit(99);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(StopSignalsDeathTest, TheDefaultComesBackAfterwards) {
  EXPECT_EXIT(
      {
        StopFlag stop{0};
        {
          const StopSignals signals(stop);
        }
        raise(SIGTERM);
        std::exit(99);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, IgnoredSignalsStayIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  {
    StopFlag stop{0};
    const StopSignals signals(stop);
    raise(SIGHUP);
    EXPECT_EQ(stop.load(), 0);
  }
  ::signal(SIGHUP, SIG_DFL);
}

TEST(PrepareProcessDeathTest, ClosedDescriptorsAreFilledAndNoCoreIsWritten) {
  EXPECT_EXIT(
      {
        close(0);
        close(1);
        prepare_process();
        rlimit core{};
        getrlimit(RLIMIT_CORE, &core);
        const bool good = fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 && core.rlim_cur == 0;
        _exit(good ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace volferry::cli
