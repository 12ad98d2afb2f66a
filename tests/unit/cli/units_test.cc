// SPDX-License-Identifier: Apache-2.0
#include "cli/units.h"

#include <gtest/gtest.h>

namespace volferry::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ParseSize, KnowsBothFamiliesOfSuffixes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("100k"), 100'000u);
  EXPECT_EQ(parse_size("50M"), 50'000'000u);
  EXPECT_EQ(parse_size("1.5Gi"), 1'610'612'736u);
  EXPECT_EQ(parse_size("2Ki"), 2048u);
  EXPECT_EQ(parse_size("2KiB"), 2048u);
  EXPECT_EQ(parse_size("3TB"), 3'000'000'000'000u);
  EXPECT_EQ(parse_size("16ti"), 17'592'186'044'416u);
  EXPECT_EQ(parse_size("0.5k"), 500u);
  EXPECT_EQ(parse_size("7B"), 7u);
}

TEST(ParseSize, IsExactForLargeWholeNumbers) {
  EXPECT_EQ(parse_size("9007199254740993"), 9007199254740993u);
  EXPECT_EQ(parse_size("18446744073709551615"), 18446744073709551615u);
}

TEST(ParseSize, RefusesEverythingElse) {
  for (const char* text : {"",          "M",
                           ".",         "-1",
                           "+1",        "1e3",
                           "0x10",      "1 M",
                           " 1",        "1.2.3",
                           "1X",        "1MM",
                           "1iM",       "1Kib2",
                           "inf",       "nan",
                           "1,5M",      "18446744073709551616",
                           "99999999P", "18446744073709551615.0"})
    EXPECT_FALSE(parse_size(text)) << text;
  EXPECT_EQ(parse_size("5X").error().code, Code::kUsage);
  EXPECT_NE(parse_size("5X").error().message().find("'5X'"), std::string::npos);
}

TEST(ParseRate, TakesSizesWithAndWithoutPerSecond) {
  EXPECT_EQ(parse_rate("50M"), 50'000'000u);
  EXPECT_EQ(parse_rate("1.5Gi/s"), 1'610'612'736u);
  EXPECT_EQ(parse_rate("10MB/s"), 10'000'000u);
  EXPECT_EQ(parse_rate("0"), 0u);
  EXPECT_FALSE(parse_rate("fast"));
  EXPECT_FALSE(parse_rate("/s"));
}

TEST(ParseSeconds, TakesDecimalsAndNeverRoundsToZero) {
  EXPECT_EQ(parse_seconds("60"), milliseconds(60'000));
  EXPECT_EQ(parse_seconds("0.25"), milliseconds(250));
  EXPECT_EQ(parse_seconds("0.0001"), milliseconds(1));
  EXPECT_EQ(parse_seconds("0"), milliseconds(0));
  for (const char* text : {"", "-1", "1s", "1e9", "2000000"})
    EXPECT_FALSE(parse_seconds(text)) << text;
}

TEST(ParseCount, KeepsToItsRange) {
  EXPECT_EQ(parse_count("1", 1, 64), 1u);
  EXPECT_EQ(parse_count("64", 1, 64), 64u);
  for (const char* text : {"0", "65", "", "x", "1.5", "-1", "99999999999"})
    EXPECT_FALSE(parse_count(text, 1, 64)) << text;
}

TEST(FormatBytes, ShowsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(45'000'000), "45.0 MB");
  EXPECT_EQ(format_bytes(4'500'000'000), "4.50 GB");
  EXPECT_EQ(format_bytes(512'000'000'000), "512 GB");
  EXPECT_EQ(format_bytes(999'999), "1.00 MB") << "never 1000 kB";
  EXPECT_EQ(format_bytes(9'996), "10.0 kB") << "never 10.00 kB";
  EXPECT_EQ(format_bytes(18446744073709551615u), "18.4 EB");
}

TEST(FormatOthers, AreReadable) {
  EXPECT_EQ(format_rate(512e6), "512 MB/s");
  EXPECT_EQ(format_rate(-1), "0 B/s");
  EXPECT_EQ(format_clock(seconds(7)), "0:07");
  EXPECT_EQ(format_clock(seconds(754)), "12:34");
  EXPECT_EQ(format_clock(seconds(3723)), "1:02:03");
  EXPECT_EQ(format_clock(seconds(1'000'000)), "> 99 h");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
}

}  // namespace
}  // namespace volferry::cli
