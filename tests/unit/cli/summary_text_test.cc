// SPDX-License-Identifier: Apache-2.0
#include "cli/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volferry::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Summary example() {
  Summary summary;
  summary.files_total = 1234;
  summary.bytes_total = 4'500'000'000;
  summary.literal_bytes = 40'000'000;
  summary.wire_sent = 45'000'000;
  summary.wire_received = 1'000;
  summary.elapsed_seconds = 2.1;
  summary.io = "threads";
  return summary;
}

TEST(SummaryLine, PushPullAndLocal) {
  EXPECT_EQ(summary_line(example(), {.remote = true}),
            "1,234 files, 4.50 GB; sent 45.0 MB in 2.10 s (99 % saved)");
  EXPECT_EQ(summary_line(example(), {}),
            "1,234 files, 4.50 GB; wrote 40.0 MB in 2.10 s (99 % saved)");
  Summary pull = example();
  std::swap(pull.wire_sent, pull.wire_received);
  EXPECT_EQ(summary_line(pull, {.remote = true}),
            "1,234 files, 4.50 GB; received 45.0 MB in 2.10 s (99 % saved)");
}

TEST(SummaryLine, HundredPercentOnlyWhereNothingMoved) {
  Summary summary = example();
  summary.literal_bytes = 1;
  EXPECT_THAT(summary_line(summary, {}), HasSubstr("(99 % saved)"));
  summary.literal_bytes = 0;
  EXPECT_THAT(summary_line(summary, {}), HasSubstr("(100 % saved)"));
  summary.literal_bytes = summary.bytes_total + 1;
  EXPECT_THAT(summary_line(summary, {}), Not(HasSubstr("saved")));
}

TEST(SummaryLine, MentionsDeletionsAndErrors) {
  Summary summary = example();
  summary.files_total = 1;
  summary.files_deleted = 2;
  summary.error_count = 1;
  EXPECT_THAT(summary_line(summary, {}), HasSubstr("1 file, "));
  EXPECT_THAT(summary_line(summary, {}), HasSubstr(", 2 deleted, 1 error"));
}

TEST(SummaryLine, DryRunAndVerify) {
  Summary summary = example();
  summary.files_transferred = 12;
  EXPECT_EQ(summary_line(summary, {.dry_run = true}),
            "dry run: 12 of 1,234 files, 4.50 GB would be transferred, 0 deleted");
  EXPECT_EQ(summary_line(summary, {.kind = CommandKind::kVerify}),
            "no differences: 1,234 files, 4.50 GB compared in 2.10 s");
  summary.differences = 1;
  EXPECT_EQ(summary_line(summary, {.kind = CommandKind::kVerify}),
            "1 difference: 1,234 files, 4.50 GB compared in 2.10 s");
}

TEST(ItemizeLine, TheDocumentedForms) {
  EXPECT_EQ(itemize_line({">f+++++++++", "new file", ""}), ">f+++++++++ new file");
  EXPECT_EQ(itemize_line({"cd+++++++++", "dir/", ""}), "cd+++++++++ dir/");
  EXPECT_EQ(itemize_line({"cL+++++++++", "l", "t\n"}), "cL+++++++++ l -> t\\x0a");
  EXPECT_EQ(itemize_line({"hf+++++++++", "b", "a"}), "hf+++++++++ b => a");
  EXPECT_EQ(itemize_line({"*deleting", "name", ""}), "*deleting   name");
  EXPECT_EQ(itemize_line({".d..t......", "./", ""}), ".d..t...... ./");
}

TEST(StatsTable, IsAligned) {
  const std::string table =
      stats_table(example(), {.remote = true}, {{ProgressSnapshot::Phase::kVerify, 1.5}});
  EXPECT_THAT(table, HasSubstr("files            1,234 (0 transferred, 0 deleted)\n"));
  EXPECT_THAT(table, HasSubstr("bytes            4,500,000,000 (4.50 GB)\n"));
  EXPECT_THAT(table, HasSubstr("wire sent        45,000,000 (45.0 MB)\n"));
  EXPECT_THAT(table, HasSubstr("  verify         1.50 s\n"));
  EXPECT_THAT(table, HasSubstr("io               threads\n"));
  EXPECT_THAT(stats_table(example(), {}, {}), Not(HasSubstr("wire")));
}

}  // namespace
}  // namespace volferry::cli
