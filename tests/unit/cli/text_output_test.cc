// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "cli/output.h"
#include "tests/unit/cli/captured_console.h"

namespace volferry::cli {
namespace {

using ::testing::HasSubstr;

struct Fixture {
  CapturedConsole captured;
  std::unique_ptr<Output> output;
  explicit Fixture(OutputArguments arguments = {}, Work work = {}, bool terminal = false)
      : captured(terminal) {
    output = make_text_output(captured.console(), arguments, work, [] { return TimePoint{}; });
  }
};

TEST(TextOutput, ASuccessfulRunIsSilentWithoutATerminal) {
  Fixture f;
  f.output->start();
  f.output->on_change({">f+++++++++", "x", ""});
  f.output->on_progress({});
  f.output->finish({}, 0);
  EXPECT_EQ(f.captured.out(), "");
  EXPECT_EQ(f.captured.err(), "");
}

TEST(TextOutput, SummaryOnATerminalUnlessQuiet) {
  Fixture loud({}, {}, true);
  loud.output->finish({}, 0);
  EXPECT_THAT(loud.captured.err(), HasSubstr("0 files, 0 B; wrote 0 B"));
  EXPECT_EQ(loud.captured.out(), "");
  Fixture quiet({.quiet = true}, {}, true);
  quiet.output->on_progress({});
  quiet.output->finish({}, 0);
  EXPECT_EQ(quiet.captured.err(), "");
}

TEST(TextOutput, StatsGoToStandardOutput) {
  Fixture f({.stats = true});
  f.output->finish({}, 0);
  EXPECT_THAT(f.captured.out(), HasSubstr("0 files, 0 B; wrote"));
  EXPECT_THAT(f.captured.out(), HasSubstr("\nerrors           0\n"));
  EXPECT_EQ(f.captured.err(), "");
}

TEST(TextOutput, StatsTellThePhases) {
  TimePoint now{};
  CapturedConsole captured;
  const auto output =
      make_text_output(captured.console(), {.stats = true}, {.remote = true}, [&] { return now; });
  ProgressSnapshot snapshot;
  for (const auto phase : {ProgressSnapshot::Phase::kSync, ProgressSnapshot::Phase::kFlush}) {
    now += std::chrono::seconds(2);
    snapshot.phase = phase;
    output->on_progress(snapshot);
  }
  now += std::chrono::seconds(1);
  output->finish({}, 0);
  EXPECT_THAT(captured.out(), HasSubstr("\n  connect        2.00 s\n  sync           2.00 s\n"
                                        "  flush          1.00 s\n"));
}

TEST(TextOutput, DryRunPrintsTheItemsOrTheSummary) {
  Fixture items({.itemize = true}, {.dry_run = true});
  items.output->on_change({">f+++++++++", "x", ""});
  items.output->finish({}, 0);
  EXPECT_EQ(items.captured.out(), ">f+++++++++ x\n");
  Fixture summary({}, {.dry_run = true});
  summary.output->on_change({">f+++++++++", "x", ""});
  summary.output->finish({}, 0);
  EXPECT_THAT(summary.captured.out(), ::testing::StartsWith("dry run: "));
}

TEST(TextOutput, VerifyListsDifferencesOnStandardOutput) {
  Fixture f({}, {.kind = CommandKind::kVerify});
  f.output->on_difference({"a\n", {"content", "mtime"}});
  Summary summary;
  summary.differences = 1;
  summary.fatal = Error{Code::kDifferences, 0, "they differ"};
  f.output->finish(summary, 24);
  EXPECT_EQ(f.captured.out(), "content,mtime a\\x0a\n");
  EXPECT_EQ(f.captured.err(), "");
}

TEST(TextOutput, VerifySaysThatThereAreNone) {
  Fixture f({}, {.kind = CommandKind::kVerify});
  f.output->finish({}, 0);
  EXPECT_THAT(f.captured.out(), ::testing::StartsWith("no differences: "));
}

TEST(TextOutput, DifferencesAfterASyncAreErrors) {
  Fixture f;
  f.output->on_difference({"a", {"content"}});
  EXPECT_EQ(f.captured.out(), "");
  EXPECT_EQ(f.captured.err(), "volferry: error: difference after the sync: content a\n");
}

TEST(TextOutput, ErrorsAndWarningsAreOneLineEach) {
  Fixture f;
  f.output->on_error({"x", EACCES, "open"});
  f.output->on_warning({"", 0, "owner of 1 items not set"});
  f.output->finish(Summary{}, 3);
  EXPECT_THAT(f.captured.err(), HasSubstr("volferry: error: open: x: Permission denied; "));
  EXPECT_THAT(f.captured.err(), HasSubstr("\nvolferry: warning: owner of 1 items not set\n"));
  Fixture quiet({.quiet = true});
  quiet.output->on_warning({"", 0, "w"});
  quiet.output->on_error({"x", EACCES, "open"});
  const std::string text = quiet.captured.err();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(TextOutput, ManyErrorsAreCountedNotShown) {
  Fixture f;
  for (std::size_t i = 0; i < Summary::kMaxErrors + 5; ++i) f.output->on_error({"x", EIO, "read"});
  f.output->finish(Summary{}, 3);
  const std::string text = f.captured.err();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<long>(Summary::kMaxErrors) + 1);
  EXPECT_THAT(text, HasSubstr("volferry: error: 5 more errors, not shown\n"));
}

TEST(TextOutput, AFatalErrorIsTheOnlyLine) {
  Fixture f({.stats = true});
  f.output->finish(failed_summary({Code::kDestinationFull, ENOSPC, "write x"}), 20);
  EXPECT_EQ(f.captured.out(), "");
  EXPECT_EQ(f.captured.err(),
            "volferry: error: write x: No space left on device; free space there and run it again: "
            "what arrived is reused\n");
}

TEST(TextOutput, ServeSaysWhereItListens) {
  Fixture f({}, {.kind = CommandKind::kServe});
  f.output->listening("[::]:8000");
  EXPECT_EQ(f.captured.out(), "listening on [::]:8000\n");
}

}  // namespace
}  // namespace volferry::cli
