// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/values.h"

#include <gtest/gtest.h>

namespace volferry::cli::mover {
namespace {

using std::chrono::milliseconds;

TEST(PlainText, IsWhatMayBeRepeated) {
  EXPECT_TRUE(plain_text("", 0));
  EXPECT_TRUE(plain_text("d\xc3\xbcsseldorf/\"x\\y\"", 20));
  EXPECT_FALSE(plain_text("abc", 2));
  for (const char* bad : {"a\nb", "\x1b[0m", "\x7f", "\xc2\x9b", "\xff", "\xc3"})
    EXPECT_FALSE(plain_text(bad, 100)) << bad;
  EXPECT_FALSE(plain_text(std::string_view("a\0b", 3), 100));
}

TEST(ParseSeconds, TakesAnOptionalUnit) {
  EXPECT_EQ(parse_seconds_s("60"), milliseconds(60'000));
  EXPECT_EQ(parse_seconds_s("2.5s"), milliseconds(2500));
  EXPECT_EQ(parse_seconds_s("0"), milliseconds(0));
  for (const char* bad : {"", "s", "-1", "1m", "1 s", "1ss", "1e3", "nan"})
    EXPECT_FALSE(parse_seconds_s(bad)) << bad;
}

TEST(ParseDuration, TakesWhatGoPrints) {
  EXPECT_EQ(parse_duration("0"), milliseconds(0));
  EXPECT_EQ(parse_duration("90"), milliseconds(90'000));
  EXPECT_EQ(parse_duration("90s"), milliseconds(90'000));
  EXPECT_EQ(parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("5m0s"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("1.5h"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("250ms"), milliseconds(250));
  EXPECT_EQ(parse_duration("1m0.5s"), milliseconds(60'500));
  for (const char* bad : {"", "m", "5x", "5m3", "-5m", "5m-3s", "5 m", "9000h", "1d", "inf", "5mm"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(ParseNumber, FitsOtherProgramsIntegers) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("9223372036854775807"), 9223372036854775807u);
  for (const char* bad : {"", "-1", "9223372036854775808", "1.0", "0x1", " 1", "1 "})
    EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(ParseBool, KnowsTwoWords) {
  EXPECT_EQ(parse_bool("true"), true);
  EXPECT_EQ(parse_bool("false"), false);
  for (const char* bad : {"", "1", "yes", "True"}) EXPECT_FALSE(parse_bool(bad)) << bad;
}

TEST(ParseEpoch, IsACounterAndANonce) {
  EXPECT_EQ(parse_epoch("3-f00d"), "3-f00d");
  EXPECT_EQ(parse_epoch("0-a-b"), "0-a-b");
  for (const char* bad : {"", "3", "3-", "-x", "x-3", "3-a b", "3-\xc3\xbc", "-1-x"})
    EXPECT_FALSE(parse_epoch(bad)) << bad;
  EXPECT_FALSE(parse_epoch("1-" + std::string(127, 'x')));
}

TEST(SetCompression, HasItsOwnWordForOff) {
  SyncOptions options;
  ASSERT_TRUE(set_compression("none", options));
  EXPECT_EQ(options.compress, CompressChoice::kOff);
  ASSERT_TRUE(set_compression("zstd:7", options));
  EXPECT_EQ(options.compress, CompressChoice::kZstd);
  EXPECT_EQ(options.compress_level, 7);
  ASSERT_TRUE(set_compression("auto", options));
  EXPECT_EQ(options.compress, CompressChoice::kAuto);
  for (const char* bad : {"off", "zstd:0", "zstd:20", "zstd:", "gzip", ""})
    EXPECT_FALSE(set_compression(bad, options)) << bad;
}

TEST(SetPreserve, KeepsWhatIsNamed) {
  SyncOptions options;
  ASSERT_TRUE(set_preserve("times,sparse,acls", options));
  EXPECT_TRUE(options.times && options.acls);
  EXPECT_FALSE(options.owner || options.perms || options.xattrs || options.hardlinks ||
               options.devices);
  EXPECT_FALSE(set_preserve("times,colour", options));
  EXPECT_FALSE(set_preserve("times,,acls", options));
  EXPECT_FALSE(set_preserve("Times", options));
}

TEST(SetExclude, TakesOnePatternALine) {
  SyncOptions options;
  ASSERT_TRUE(set_exclude("/cache\r\n\n# comment\n*.tmp\n+ /keep", options));
  ASSERT_EQ(options.filters.size(), 3u);
  EXPECT_EQ(options.filters[0].pattern, "/cache");
  EXPECT_FALSE(options.filters[1].include);
  EXPECT_TRUE(options.filters[2].include);
  EXPECT_EQ(options.filters[2].pattern, "/keep");
}

}  // namespace
}  // namespace volferry::cli::mover
