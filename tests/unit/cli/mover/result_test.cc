// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/json_output.h"

namespace volferry::cli::mover {
namespace {

using nlohmann::json;

// The samples are read by other programs' tests too, so they are what is printed to the byte.
std::string sample(const std::string& name) {
  const std::ifstream file(std::string(VOLFERRY_SAMPLES) + "/" + name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Outcome complete() {
  Outcome outcome;
  Summary& summary = outcome.summary;
  summary.files_total = 1200;
  summary.files_transferred = 3;
  summary.bytes_total = 5'000'000'000;
  summary.literal_bytes = 1'048'576;
  summary.matched_bytes = 4'900'000'000;
  summary.zero_bytes = 98'951'424;
  summary.wire_sent = 1'200'345;
  summary.wire_received = 45'678;
  summary.elapsed_seconds = 12.5;
  outcome.seq = 42;
  outcome.attempt = "7b0f4f1e-9f0b-4c0e-8f3a-5d1f8f1f2b11";
  outcome.final_sync_id = "r1";
  outcome.peer = Identity{.replication_id = "db",
                          .epoch = "3-f00d",
                          .seq = 41,
                          .volume_mode = VolumeMode::kFilesystem,
                          .size = 10'737'418'240,
                          .source_volume_id = "csi.example.com/vol-1"};
  outcome.sessions = 1;
  outcome.log_tail = "info: confined to the volume by landlock\ninfo: connected peer=\"volferry\"";
  return outcome;
}

TEST(Result, OkIsTheSample) { EXPECT_EQ(result_json(complete()) + "\n", sample("result.ok.json")); }

TEST(Result, RefusalIsTheSample) {
  const Error error{Code::kIdentity, 0,
                    "StaleEpoch: the source's epoch is 1-aa, the destination has received 2-bb; "
                    "nothing was written. token=0123456789ab"};
  EXPECT_EQ(refusal_json(error) + "\n", sample("refusal.json"));
}

TEST(Result, FailedIsTheSample) {
  Outcome outcome;
  outcome.role = Role::kDestination;
  outcome.summary.fatal = Error{Code::kDestinationFull, ENOSPC, "d0/large: write"};
  outcome.summary.files_total = 17;
  outcome.summary.elapsed_seconds = 3.25;
  outcome.seq = 41;
  outcome.sessions = 2;
  outcome.log_tail = "warning: session failed: d0/large: write: No space left on device";
  EXPECT_EQ(result_json(outcome) + "\n", sample("result.failed.json"));
}

TEST(Result, ProgressIsTheSample) {
  ProgressMeter meter;
  TimePoint now{};
  ProgressSnapshot snapshot{.phase = ProgressSnapshot::Phase::kSync,
                            .total_known = true,
                            .files_total = 1200,
                            .bytes_total = 5'000'000'000};
  meter.update(snapshot, now);
  snapshot.files_done = 600;
  snapshot.bytes_done = 1'000'000'000;
  meter.update(snapshot, now + std::chrono::seconds(2));
  EXPECT_EQ(progress_json(meter) + "\n", sample("progress.json"));
}

TEST(Result, RetriesWhereTheyCanHelp) {
  for (const int code : {0, 2, 4, 11, 12, 20, 23, 30}) EXPECT_FALSE(may_retry(code)) << code;
  for (const int code : {1, 3, 10, 13, 21, 22, 24, 130, 143}) EXPECT_TRUE(may_retry(code)) << code;
}

TEST(Result, BothSignalsInterrupt) {
  for (const Code code : {Code::kInterrupted, Code::kTerminated}) {
    Outcome outcome;
    outcome.summary.fatal = Error{code, 0, "stopped"};
    const json event = json::parse(result_json(outcome));
    EXPECT_EQ(event["reason"], "Interrupted");
    EXPECT_EQ(event["result"], "failed");
    EXPECT_EQ(event["exit_code"], exit_code(code));
  }
}

TEST(Result, PartialNamesTheFirstItem) {
  Outcome outcome;
  outcome.summary.error_count = 2;
  outcome.summary.errors = {{"gone", 0, "vanished", true}, {"a\nb", EACCES, "open", false}};
  json event = json::parse(result_json(outcome));
  EXPECT_EQ(event["result"], "partial");
  EXPECT_EQ(event["reason"], "ItemsFailed");
  EXPECT_EQ(event["exit_code"], 3);
  EXPECT_EQ(event["message"], "2 items failed, the first: open: a\\x0ab: Permission denied");
  outcome.summary.error_count = 0;
  outcome.summary.changed_count = 1;
  event = json::parse(result_json(outcome));
  EXPECT_EQ(event["reason"], "SourceChanged");
  EXPECT_EQ(event["exit_code"], 4);
  EXPECT_NE(event["message"].get<std::string>().find("gone"), std::string::npos);
}

TEST(Result, StaysWithinItsSize) {
  Outcome outcome = complete();
  // What grows most when it is written as JSON.
  const std::string evil(5000, '"');
  outcome.summary.fatal = Error{Code::kInternal, 0, evil + "\n\x1b\xff"};
  outcome.attempt = std::string(kMaxAttempt, '\\');
  outcome.final_sync_id = std::string(kMaxFinalSyncId, '"');
  outcome.peer->replication_id = std::string(kMaxReplicationId, '"');
  outcome.peer->attempt = std::string(kMaxAttempt, '"');
  outcome.peer->source_volume_id = std::string(kMaxVolumeId, '"');
  outcome.peer->final_sync_id = std::string(kMaxFinalSyncId, '"');
  outcome.peer->epoch = std::string("9223372036854775807-").append(100, 'x');
  for (int line = 0; line < 80; ++line) outcome.log_tail.append("\n").append(9, '"');
  const std::string text = result_json(outcome);
  EXPECT_LE(text.size(), kMaxResult);
  const json event = json::parse(text);
  EXPECT_LE(event["message"].get<std::string>().size(), kMaxMessage);
  EXPECT_GT(event["message"].get<std::string>().size(), 400u);
  EXPECT_EQ(event["peer"]["source_volume_id"].get<std::string>().size(), kMaxVolumeId);
  EXPECT_TRUE(event["log_tail"].get<std::string>().ends_with("\"\"\"")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace volferry::cli::mover
