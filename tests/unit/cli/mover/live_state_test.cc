// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/live_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/mover/metrics.h"

namespace volferry::cli::mover {
namespace {

class LiveStateTest : public ::testing::Test {
 protected:
  TimePoint now_{};
  LiveState state_{[this] { return now_; }};
};

TEST_F(LiveStateTest, NothingBeforeTheFirstSnapshot) {
  EXPECT_FALSE(state_.progress());
  EXPECT_TRUE(state_.healthy());
  EXPECT_EQ(state_.totals().sessions, 0u);
}

TEST_F(LiveStateTest, ProgressIsTheLastSnapshot) {
  state_.begin_session();
  state_.update({.phase = ProgressSnapshot::Phase::kSync, .files_total = 3, .files_done = 1});
  const auto event = nlohmann::json::parse(*state_.progress());
  EXPECT_EQ(event["files_done"], 1);
  EXPECT_EQ(event["phase"], "sync");
}

TEST_F(LiveStateTest, ARefusalLastsUntilAPeerIsAccepted) {
  EXPECT_FALSE(state_.refusal());
  state_.refuse({Code::kIdentity, 0, "StaleEpoch: one"});
  state_.refuse({Code::kIdentity, 0, "StaleEpoch: another"});
  state_.begin_session();
  EXPECT_EQ(state_.refusal()->context, "StaleEpoch: another");
  state_.accept();
  EXPECT_FALSE(state_.refusal());
}

TEST_F(LiveStateTest, CountersAddUpOverSessions) {
  state_.begin_session();
  state_.update({.literal_bytes = 10, .wire_sent = 100});
  state_.end_session();
  state_.begin_session();
  EXPECT_EQ(state_.totals().literal_bytes, 10u);
  state_.update({.literal_bytes = 5, .zero_bytes = 1, .wire_sent = 50});
  const LiveState::Totals totals = state_.totals();
  EXPECT_EQ(totals.literal_bytes, 15u);
  EXPECT_EQ(totals.zero_bytes, 1u);
  EXPECT_EQ(totals.wire_sent, 150u);
  EXPECT_EQ(totals.sessions, 2u);
}

TEST_F(LiveStateTest, ASessionThatGetsNoFurtherIsStuck) {
  now_ += LiveState::kStuck * 2;
  EXPECT_TRUE(state_.healthy());  // waiting for a peer
  state_.begin_session();
  state_.update({.bytes_done = 1});
  now_ += LiveState::kStuck - std::chrono::seconds(1);
  EXPECT_TRUE(state_.healthy());
  now_ += std::chrono::seconds(2);
  // Pings are no progress.
  state_.update({.bytes_done = 1, .wire_received = 500});
  EXPECT_FALSE(state_.healthy());
  state_.update({.bytes_done = 2, .wire_received = 600});
  EXPECT_TRUE(state_.healthy());
  now_ += LiveState::kStuck * 2;
  EXPECT_FALSE(state_.healthy());
  state_.end_session();
  EXPECT_TRUE(state_.healthy());
}

TEST(MetricsText, HasEveryFamily) {
  LiveState::Totals totals;
  totals.literal_bytes = 1ull << 40;
  totals.sessions = 2;
  totals.now = {.total_known = true, .files_total = 4, .files_done = 1};
  const std::string text = metrics_text(Role::kSource, totals, false);
  for (const char* line :
       {"volferry_mover_bytes_total{role=\"source\",kind=\"literal\"} 1099511627776\n",
        "volferry_mover_files_total{role=\"source\",kind=\"done\"} 1\n",
        "volferry_mover_files_total{role=\"source\",kind=\"listed\"} 4\n",
        "volferry_mover_sessions_total{role=\"source\"} 2\n",
        "volferry_mover_progress_ratio{role=\"source\"} 0.25\n",
        "volferry_mover_up{role=\"source\"} 0\n", "# TYPE volferry_mover_bytes_total counter\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(MetricsText, RatioIsZeroWhileTheTotalIsUnknown) {
  LiveState::Totals totals;
  totals.now = {.files_total = 4, .files_done = 4};
  EXPECT_NE(metrics_text(Role::kSource, totals, true).find("progress_ratio{role=\"source\"} 0\n"),
            std::string::npos);
}

}  // namespace
}  // namespace volferry::cli::mover
