// SPDX-License-Identifier: Apache-2.0
#include "cli/json_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/output.h"
#include "tests/unit/cli/captured_console.h"

namespace volferry::cli {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// A JSON output whose lines can be read back; each must be one object.
struct Fixture {
  CapturedConsole captured;
  TimePoint now{};
  std::unique_ptr<Output> output;

  explicit Fixture(OutputArguments arguments = {.itemize = true, .json = true}, Work work = {}) {
    output = make_json_output(captured.console(), arguments, work, [this] { return now; });
  }
  std::vector<json> events() const {
    std::vector<json> list;
    std::istringstream lines(captured.out());
    for (std::string line; std::getline(lines, line);) list.push_back(json::parse(line));
    return list;
  }
};

TEST(ResultName, FollowsTheExitCode) {
  EXPECT_EQ(result_name(0), "ok");
  EXPECT_EQ(result_name(3), "partial");
  EXPECT_EQ(result_name(4), "partial");
  for (const int code : {1, 2, 10, 13, 20, 24, 30, 130, 143})
    EXPECT_EQ(result_name(code), "failed");
}

TEST(SummaryJson, HasEveryContractedField) {
  Summary summary;
  summary.files_total = 7;
  summary.literal_bytes = 1ull << 60;
  summary.elapsed_seconds = 1.25;
  summary.io = "uring";
  summary.errors.push_back({"a\xff", EACCES, "open"});
  const json event = json::parse(summary_json(summary, 3));
  for (const char* field :
       {"event", "result", "exit_code", "files_total", "files_transferred", "files_deleted",
        "dirs_total", "bytes_total", "literal_bytes", "matched_bytes", "zero_bytes", "wire_sent",
        "wire_received", "elapsed_s", "io", "errors", "owner_skipped"})
    EXPECT_TRUE(event.contains(field)) << field;
  EXPECT_EQ(event["event"], "summary");
  EXPECT_EQ(event["result"], "partial");
  EXPECT_EQ(event["exit_code"], 3);
  EXPECT_EQ(event["files_total"], 7);
  EXPECT_EQ(event["literal_bytes"], 1ull << 60);
  EXPECT_EQ(event["elapsed_s"], 1.25);
  EXPECT_EQ(event["errors"][0], json({{"path", "a\\xff"}, {"errno", EACCES}, {"what", "open"}}));
  EXPECT_FALSE(event.contains("fatal"));
}

TEST(SummaryJson, SaysWhatEndedTheWork) {
  const json event =
      json::parse(summary_json(failed_summary({Code::kDestinationFull, ENOSPC, "write x"}), 20));
  EXPECT_EQ(event["result"], "failed");
  EXPECT_EQ(event["fatal"]["reason"], "DestinationFull");
  EXPECT_EQ(event["fatal"]["message"], "write x: No space left on device");
}

TEST(JsonOutput, StartNamesBothEnds) {
  Fixture f({.json = true}, {.source = "a\n", .destination = "tls://h", .dry_run = true});
  f.output->start();
  const json event = f.events().at(0);
  EXPECT_EQ(event["event"], "start");
  EXPECT_EQ(event["command"], "sync");
  EXPECT_EQ(event["source"], "a\\x0a");
  EXPECT_EQ(event["destination"], "tls://h");
  EXPECT_EQ(event["dry_run"], true);
}

TEST(JsonOutput, ItemsDifferencesErrorsAndWarnings) {
  Fixture f;
  f.output->on_change({"cL+++++++++", "l\\", "t"});
  f.output->on_difference({"p\x01", {"content", "mtime"}});
  f.output->on_error({"x", EIO, "read"});
  f.output->on_warning({"", 0, "owner of 2 items not set"});
  f.output->on_error({"y", 0, "changed while read", true});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[4]["changed"], true);
  EXPECT_EQ(events[0],
            json({{"event", "item"}, {"code", "cL+++++++++"}, {"path", "l\\\\"}, {"target", "t"}}));
  EXPECT_EQ(events[1],
            json({{"event", "difference"}, {"path", "p\\x01"}, {"kinds", {"content", "mtime"}}}));
  EXPECT_EQ(events[2], json({{"event", "error"}, {"path", "x"}, {"errno", EIO}, {"what", "read"}}));
  EXPECT_EQ(events[3]["event"], "warning");
  // What a person should see is on standard error too, a line each.
  EXPECT_EQ(std::ranges::count(f.captured.err(), '\n'), 3);
}

TEST(JsonOutput, NoItemsUnlessAsked) {
  Fixture f({.json = true});
  f.output->on_change({">f+++++++++", "x", ""});
  EXPECT_TRUE(f.events().empty());
}

TEST(JsonOutput, ProgressOnceASecondAndAtEachPhase) {
  Fixture f;
  ProgressSnapshot snapshot;
  snapshot.phase = ProgressSnapshot::Phase::kSync;
  snapshot.total_known = true;
  snapshot.bytes_total = 4000;
  for (int ms = 0; ms <= 2000; ms += 50) {
    f.now = TimePoint{} + milliseconds(ms);
    snapshot.bytes_done = static_cast<std::uint64_t>(ms);
    f.output->on_progress(snapshot);
  }
  snapshot.phase = ProgressSnapshot::Phase::kFlush;
  f.output->on_progress(snapshot);
  const auto events = f.events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2]["phase"], "sync");
  EXPECT_EQ(events[2]["bytes_done"], 2000);
  EXPECT_EQ(events[2]["bytes_per_s"], 1000);
  EXPECT_EQ(events[2]["eta_s"], 2);
  EXPECT_EQ(events[3]["phase"], "flush");
  EXPECT_TRUE(events[3]["eta_s"].is_null());
}

TEST(JsonOutput, ProgressCanBeTurnedOff) {
  Fixture f({.progress = When::kOff, .json = true});
  f.output->on_progress({});
  EXPECT_TRUE(f.events().empty());
}

TEST(JsonOutput, TheSummaryIsLastAndTheErrorOnStandardError) {
  Fixture f;
  f.output->finish(failed_summary({Code::kConnect, 0, "connect h:1"}), 10);
  EXPECT_EQ(f.events().back()["event"], "summary");
  EXPECT_TRUE(f.captured.err().starts_with("volferry: error: connect h:1; "));
}

}  // namespace
}  // namespace volferry::cli
