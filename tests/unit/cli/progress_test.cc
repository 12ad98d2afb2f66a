// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/cli/captured_console.h"

namespace volferry::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TimePoint kStart{std::chrono::hours(1)};

ProgressSnapshot snapshot(std::uint64_t bytes, std::uint64_t files, bool total_known = true) {
  ProgressSnapshot result;
  result.phase = ProgressSnapshot::Phase::kSync;
  result.total_known = total_known;
  result.bytes_total = 1'000'000'000;
  result.files_total = 1000;
  result.bytes_done = bytes;
  result.files_done = files;
  return result;
}

TEST(ProgressMeter, RateIsThatOfTheWindow) {
  ProgressMeter meter;
  meter.update(snapshot(0, 0), kStart);
  EXPECT_EQ(meter.bytes_per_second(), 0);
  EXPECT_EQ(meter.remaining(), std::nullopt);
  // Ten seconds at 10 MB/s, then ten at 50 MB/s: only the last five count.
  for (int s = 1; s <= 10; ++s) meter.update(snapshot(s * 10'000'000ull, s), kStart + seconds(s));
  EXPECT_NEAR(meter.bytes_per_second(), 10e6, 1);
  for (int s = 1; s <= 10; ++s)
    meter.update(snapshot(100'000'000 + s * 50'000'000ull, 10 + s), kStart + seconds(10 + s));
  EXPECT_NEAR(meter.bytes_per_second(), 50e6, 1);
  EXPECT_NEAR(meter.files_per_second(), 1, 1e-9);
}

TEST(ProgressMeter, FrequentSnapshotsDoNotShortenTheWindow) {
  ProgressMeter meter;
  for (int ms = 0; ms <= 8000; ++ms)
    meter.update(snapshot(ms * 1000ull, 0), kStart + milliseconds(ms));
  EXPECT_NEAR(meter.bytes_per_second(), 1e6, 1e3);
}

TEST(ProgressMeter, RemainingTimeByBytesOrFiles) {
  ProgressMeter by_bytes;
  by_bytes.update(snapshot(0, 0), kStart);
  by_bytes.update(snapshot(100'000'000, 500), kStart + seconds(1));
  EXPECT_EQ(by_bytes.remaining(), seconds(9));
  ProgressMeter by_files;
  by_files.update(snapshot(0, 0), kStart);
  by_files.update(snapshot(900'000'000, 100), kStart + seconds(1));
  EXPECT_EQ(by_files.remaining(), seconds(9));
  ProgressMeter one_file;
  one_file.update(snapshot(0, 999), kStart);
  one_file.update(snapshot(500'000'000, 999), kStart + seconds(1));
  EXPECT_EQ(one_file.remaining(), seconds(1));
  ProgressMeter listing;
  listing.update(snapshot(0, 0, false), kStart);
  listing.update(snapshot(100'000'000, 0, false), kStart + seconds(1));
  EXPECT_EQ(listing.remaining(), std::nullopt);
}

TEST(ProgressMeter, ANewPhaseStartsAnew) {
  ProgressMeter meter;
  meter.update(snapshot(0, 0), kStart);
  meter.update(snapshot(500'000'000, 0), kStart + seconds(1));
  ProgressSnapshot verify = snapshot(0, 0);
  verify.phase = ProgressSnapshot::Phase::kVerify;
  meter.update(verify, kStart + seconds(2));
  EXPECT_EQ(meter.bytes_per_second(), 0);
}

TEST(ProgressMeter, RendersAllPartsWhereThereIsRoom) {
  ProgressMeter meter;
  meter.update(snapshot(0, 0), kStart);
  meter.update(snapshot(250'000'000, 250), kStart + seconds(1));
  EXPECT_EQ(meter.render(200),
            "sync [#######.......................]  25 %  250 MB of 1.00 GB  250 MB/s  ETA 0:03  "
            "250/1,000 files");
}

TEST(ProgressMeter, NeverIsWiderThanAsked) {
  ProgressMeter meter;
  meter.update(snapshot(0, 0), kStart);
  meter.update(snapshot(999'999'999, 999), kStart + seconds(1));
  for (std::size_t columns = 1; columns < 150; ++columns)
    EXPECT_LE(meter.render(columns).size(), columns);
  EXPECT_THAT(meter.render(45), HasSubstr("99 %")) << "not 100 before the end";
}

TEST(ProgressMeter, MarksATotalThatStillGrows) {
  ProgressMeter meter;
  meter.update(snapshot(1, 1, false), kStart);
  EXPECT_THAT(meter.render(200), HasSubstr("1.00 GB+"));
  EXPECT_THAT(meter.render(200), HasSubstr("1/1,000+ files"));
  EXPECT_THAT(meter.render(200), Not(HasSubstr("%")));
}

TEST(ProgressMeter, CountersPastTheirTotalStayWithinTheBar) {
  ProgressMeter meter;
  meter.update(snapshot(2'000'000'000, 2000), kStart);
  EXPECT_THAT(meter.render(200), HasSubstr("[##############################] 100 %"));
}

TEST(ProgressBar, RedrawsAtMostFiveTimesASecond) {
  CapturedConsole captured(true);
  TimePoint now = kStart;
  ProgressBar bar(captured.console(), When::kAuto, [&] { return now; });
  for (int ms = 0; ms < 1000; ms += 10) {
    now = kStart + milliseconds(ms);
    bar.update(snapshot(ms, 0));
  }
  bar.clear();
  const std::string text = captured.err();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 5 + 1);
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST(ProgressBar, IsOffWithoutATerminal) {
  CapturedConsole captured(false);
  ProgressBar bar(captured.console(), When::kAuto, [] { return kStart; });
  bar.update(snapshot(1, 1));
  EXPECT_EQ(captured.err(), "");
}

TEST(ProgressBar, ForcedOnWithoutATerminalPrintsPlainLines) {
  CapturedConsole captured(false);
  TimePoint now = kStart;
  ProgressBar bar(captured.console(), When::kOn, [&] { return now; });
  for (int ms = 0; ms < 2500; ms += 100) {
    now = kStart + milliseconds(ms);
    bar.update(snapshot(1, 1));
  }
  bar.clear();
  const std::string text = captured.err();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(ProgressBar, CanBeTurnedOff) {
  CapturedConsole captured(true);
  ProgressBar bar(captured.console(), When::kOff, [] { return kStart; });
  bar.update(snapshot(1, 1));
  EXPECT_EQ(captured.err(), "");
}

}  // namespace
}  // namespace volferry::cli
