// SPDX-License-Identifier: Apache-2.0
#include "cli/filter_rules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace volferry::cli {
namespace {

class FilterFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "volferry-filter-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& content) const {
    const std::string path = directory_ + "/rules";
    std::ofstream(path) << content;
    return path;
  }
  std::string directory_;
};

TEST(ParseFilterRule, PrefixDecidesOverTheOption) {
  EXPECT_FALSE(parse_filter_rule("*.o", false)->include);
  EXPECT_TRUE(parse_filter_rule("*.o", true)->include);
  EXPECT_TRUE(parse_filter_rule("+ *.c", false)->include);
  EXPECT_EQ(parse_filter_rule("+ *.c", false)->pattern, "*.c");
  EXPECT_FALSE(parse_filter_rule("- x", true)->include);
  EXPECT_EQ(parse_filter_rule("-x", false)->pattern, "-x");
  EXPECT_FALSE(parse_filter_rule("", false));
  EXPECT_FALSE(parse_filter_rule("+ ", false));
}

TEST_F(FilterFile, SkipsCommentsAndBlankLines) {
  const auto rules = read_filter_file(write("# comment\n\n; another\n/a\r\n+ b c \n- d/"));
  ASSERT_TRUE(rules);
  ASSERT_EQ(rules->size(), 3u);
  EXPECT_EQ((*rules)[0].pattern, "/a");
  EXPECT_FALSE((*rules)[0].include);
  EXPECT_EQ((*rules)[1].pattern, "b c ") << "spaces belong to the name";
  EXPECT_TRUE((*rules)[1].include);
  EXPECT_EQ((*rules)[2].pattern, "d/");
}

TEST_F(FilterFile, AnEmptyFileHasNoRules) {
  const auto rules = read_filter_file(write(""));
  ASSERT_TRUE(rules);
  EXPECT_TRUE(rules->empty());
}

TEST_F(FilterFile, NamesAFileThatCannotBeRead) {
  const auto missing = read_filter_file(directory_ + "/none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kUsage);
  EXPECT_NE(missing.error().message().find("/none: No such file"), std::string::npos);
  EXPECT_FALSE(read_filter_file(directory_)) << "a directory";
}

}  // namespace
}  // namespace volferry::cli
