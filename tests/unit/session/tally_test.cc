// SPDX-License-Identifier: Apache-2.0
#include "engine/session/tally.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

class TallyTest : public ::testing::Test {
 protected:
  testing::Recorder recorder_;
  Tally tally_{recorder_};
};

TEST_F(TallyTest, NothingHappenedIsSuccess) { EXPECT_EQ(tally_.summary().exit_code(), 0); }

TEST_F(TallyTest, ItemErrorsAreToldAndCounted) {
  tally_.item_error("a", EACCES, "open a");
  const Summary summary = tally_.summary();
  EXPECT_EQ(summary.exit_code(), 3);
  EXPECT_EQ(summary.error_count, 1u);
  ASSERT_EQ(recorder_.errors().size(), 1u);
  EXPECT_EQ(recorder_.errors()[0].path, "a");
  EXPECT_FALSE(tally_.stopped());
}

TEST_F(TallyTest, ChangedItemsAreTheirOwnOutcome) {
  tally_.item_changed("a", "vanished");
  EXPECT_EQ(tally_.summary().exit_code(), 4);
  EXPECT_TRUE(recorder_.errors()[0].changed);
  tally_.item_error("b", EIO, "read");
  EXPECT_EQ(tally_.summary().exit_code(), 3);
}

TEST_F(TallyTest, DifferencesComeBeforeChanges) {
  tally_.item_changed("a", "vanished");
  tally_.difference({"b", {"content"}});
  EXPECT_EQ(tally_.summary().exit_code(), 24);
}

TEST_F(TallyTest, TheFirstFatalErrorWins) {
  tally_.fail({Code::kConnectionLost, 0, "first"});
  tally_.fail({Code::kProtocol, 0, "second"});
  EXPECT_TRUE(tally_.stopped());
  EXPECT_EQ(tally_.fatal()->context, "first");
  EXPECT_EQ(tally_.summary().exit_code(), 13);
}

TEST_F(TallyTest, FullDestinationIsRememberedApart) {
  tally_.destination_error("a", {Code::kSystem, ENOSPC, "pwrite"});
  EXPECT_TRUE(tally_.is_full());
  EXPECT_EQ(tally_.full()->code, Code::kDestinationFull);
  EXPECT_EQ(tally_.errors(), 0u);
  EXPECT_FALSE(tally_.stopped());
  tally_.clear_full();
  EXPECT_FALSE(tally_.is_full());
  EXPECT_FALSE(tally_.full());
}

TEST_F(TallyTest, BrokenDestinationEndsAll) {
  for (const int broken : {EIO, EROFS, ENODEV}) {
    Tally tally(recorder_);
    tally.destination_error("a", {Code::kSystem, broken, "pwrite"});
    EXPECT_EQ(tally.fatal().value().code, Code::kDestinationWrite) << broken;
  }
}

TEST_F(TallyTest, OtherDestinationErrorsAreTheItems) {
  tally_.destination_error("a", {Code::kSystem, EACCES, "open"});
  EXPECT_EQ(tally_.errors(), 1u);
  EXPECT_FALSE(tally_.stopped());
  tally_.destination_error("a", {Code::kCancelled, 0, "stopped"});
  EXPECT_EQ(tally_.errors(), 1u);
  tally_.destination_error("a", {Code::kProtocol, 0, "breach"});
  EXPECT_TRUE(tally_.stopped());
}

TEST_F(TallyTest, AnImagesErrorsAreTheSessions) {
  tally_.set_image("img");
  tally_.destination_error("img", {Code::kSystem, EACCES, "open"});
  EXPECT_EQ(tally_.summary().exit_code(), 21);
  Tally source(recorder_);
  source.set_image("img");
  source.source_error("img", EIO, "read");
  EXPECT_EQ(source.summary().exit_code(), 22);
}

TEST_F(TallyTest, SourceErrorsForbidDeletion) {
  tally_.source_error("a", EACCES, "open");
  EXPECT_EQ(tally_.source_errors.load(), 1u);
  EXPECT_EQ(tally_.summary().exit_code(), 3);
}

TEST_F(TallyTest, ErrorsAreCountedPastWhatIsKept) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 500; ++i) tally_.item_error("f", EACCES, "open");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Summary summary = tally_.summary();
  EXPECT_EQ(summary.error_count, 2000u);
  EXPECT_EQ(summary.errors.size(), Summary::kMaxErrors);
  EXPECT_EQ(recorder_.errors().size(), 2000u);
}

TEST(SummaryExitCode, IsThatOfTheFatalError) {
  const std::pair<Code, int> codes[] = {
      {Code::kInternal, 1},         {Code::kUsage, 2},
      {Code::kConnect, 10},         {Code::kAuth, 11},
      {Code::kProtocol, 12},        {Code::kConnectionLost, 13},
      {Code::kDestinationFull, 20}, {Code::kDestinationWrite, 21},
      {Code::kSourceRead, 22},      {Code::kDestinationTooSmall, 23},
      {Code::kIdentity, 30},        {Code::kInterrupted, 130},
      {Code::kTerminated, 143}};
  for (const auto& [code, exit] : codes) {
    Summary summary;
    summary.error_count = 5;
    summary.fatal = Error{code, 0, "x"};
    EXPECT_EQ(summary.exit_code(), exit);
  }
}

}  // namespace
}  // namespace volferry::session
