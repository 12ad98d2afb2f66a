// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace volferry::cli::bench {
namespace {

using ::testing::HasSubstr;

std::vector<Row> example() {
  return {
      {.name = "read, direct", .unit = "bytes", .rate = 1.5e9, .limit = 2e9, .limit_name = "plain"},
      {.name = "write, direct, durable", .unit = "bytes", .note = "not possible\nhere"},
      {.name = "hash xxh3", .unit = "bytes", .rate = 12e9},
      {.name = "loopback TLS, 1 stream", .unit = "bytes", .rate = 0.5e9},
      {.name = "loopback TLS, 4 streams", .unit = "bytes", .rate = 2e9},
      {.name = "create 4 KiB files", .unit = "files", .rate = 130000, .limit = 130000},
  };
}

TEST(Table, ColumnsLineUp) {
  const std::string text = table(example());
  EXPECT_THAT(text, HasSubstr("1.50 GB/s        2.00 GB/s     75 %  plain\n"));
  EXPECT_THAT(text, HasSubstr("130,000 files/s  130,000 files/s    100 %"));
  EXPECT_THAT(text, HasSubstr("not possible\\x0ahere\n"));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::size_t end_of_numbers = line.find("share") + 5;
  while (std::getline(lines, line)) {
    ASSERT_GT(line.size(), end_of_numbers);
    EXPECT_NE(line[end_of_numbers - 1], ' ') << line;
    EXPECT_EQ(line[end_of_numbers], ' ') << line;
  }
}

TEST(RowJson, MissingRatesAreNull) {
  const auto measured = nlohmann::json::parse(row_json(example()[0]));
  EXPECT_EQ(measured["rate"], 1'500'000'000);
  EXPECT_EQ(measured["unit"], "bytes/s");
  const auto missing = nlohmann::json::parse(row_json(example()[1]));
  EXPECT_TRUE(missing["rate"].is_null());
  EXPECT_EQ(missing["note"], "not possible\\x0ahere");
}

TEST(Bottleneck, IsTheSlowestStageWithItsBestVariant) {
  EXPECT_THAT(bottleneck(example()), HasSubstr("reading the disk (1.50 GB/s)"));
  EXPECT_THAT(bottleneck(example()), HasSubstr("12.0 Gbit/s"));
  EXPECT_THAT(bottleneck({}), HasSubstr("unknown"));
}

}  // namespace
}  // namespace volferry::cli::bench
