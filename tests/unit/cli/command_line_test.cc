// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volferry::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A command with one option of each kind.
struct Fixture {
  CommandLine line{
      {.name = "test", .synopsis = "A B", .description = "Tests.", .epilog = "End.\n"}};
  bool flag = false;
  bool on = true;
  int verbose = 0;
  std::string text = "default";
  std::vector<std::string> collected;
  std::vector<std::string> words;

  Fixture() {
    line.endpoints(words);
    line.group("First group");
    line.flag("-f,--flag", flag, "a flag");
    line.flag("--on,!--no-on", on, "on by default");
    line.counter("-v,--verbose", verbose, "more");
    line.group("Second group");
    line.text("-t,--text", "TEXT", text, "a text");
    for (const char* name : {"--one", "--two"})
      line.value(
          name, "X",
          [this, name](std::string_view value) -> Status {
            if (value == "bad") return fail_with(Code::kUsage, "'bad' is bad");
            collected.push_back(std::string(name) + std::string(value));
            return {};
          },
          "collects");
  }
  std::string error(const std::vector<std::string>& arguments) {
    const auto parsed = line.parse(arguments);
    if (parsed) return "no error";
    EXPECT_EQ(parsed.error().code, Code::kUsage);
    EXPECT_THAT(parsed.error().message(), HasSubstr("; see 'volferry test --help'"));
    return parsed.error().message();
  }
};

TEST(CommandLine, KeepsDefaults) {
  Fixture f;
  const auto parsed = f.line.parse({});
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->has_value());
  EXPECT_FALSE(f.flag);
  EXPECT_TRUE(f.on);
  EXPECT_EQ(f.text, "default");
  EXPECT_THAT(f.words, ElementsAre());
  EXPECT_FALSE(f.line.given("--text"));
}

TEST(CommandLine, SetsTargets) {
  Fixture f;
  ASSERT_TRUE(f.line.parse({"a", "-fvv", "--no-on", "-tx", "b", "-v"}));
  EXPECT_TRUE(f.flag);
  EXPECT_FALSE(f.on);
  EXPECT_EQ(f.verbose, 3);
  EXPECT_EQ(f.text, "x");
  EXPECT_THAT(f.words, ElementsAre("a", "b"));
  EXPECT_TRUE(f.line.given("--text"));
  EXPECT_TRUE(f.line.given("-t"));
}

TEST(CommandLine, TheLastOneCounts) {
  Fixture f;
  ASSERT_TRUE(f.line.parse({"--no-on", "--on", "--text", "1", "--text=2"}));
  EXPECT_TRUE(f.on);
  EXPECT_EQ(f.text, "2");
}

TEST(CommandLine, ConvertersRunInTheOrderOfTheCommandLine) {
  Fixture f;
  ASSERT_TRUE(f.line.parse({"--two", "a", "--one=b", "x", "--two", "-c", "--one", "d"}));
  EXPECT_THAT(f.collected, ElementsAre("--twoa", "--oneb", "--two-c", "--oned"));
  EXPECT_THAT(f.words, ElementsAre("x"));
}

TEST(CommandLine, ArgumentsStayAsTheyAre) {
  Fixture f;
  ASSERT_TRUE(f.line.parse({"--text", "[a,b]", "[c,d]", "--", "--flag"}));
  EXPECT_EQ(f.text, "[a,b]");
  EXPECT_THAT(f.words, ElementsAre("[c,d]", "--flag"));
  EXPECT_FALSE(f.flag);
}

TEST(CommandLine, ErrorsNameTheOption) {
  EXPECT_THAT(Fixture().error({"--flga"}),
              HasSubstr("unknown option '--flga', did you mean --flag?"));
  EXPECT_THAT(Fixture().error({"--qqqqqq"}), HasSubstr("unknown option '--qqqqqq';"));
  EXPECT_THAT(Fixture().error({"-Z"}), HasSubstr("unknown option '-Z'"));
  EXPECT_THAT(Fixture().error({"--verb"}), HasSubstr("did you mean --verbose?"));
  EXPECT_THAT(Fixture().error({"--text"}), HasSubstr("option --text needs a value"));
  EXPECT_THAT(Fixture().error({"--text=", "a"}), HasSubstr("option --text needs a value"));
  EXPECT_THAT(Fixture().error({"--flag=x"}), HasSubstr("option --flag takes no value"));
  EXPECT_THAT(Fixture().error({"--one", "bad"}), HasSubstr("option --one: 'bad' is bad"));
  EXPECT_THAT(Fixture().error({"a", "b", "c\n"}), HasSubstr("unexpected argument 'c\\x0a'"));
}

TEST(CommandLine, HelpListsGroupsAndOptions) {
  Fixture f;
  const auto parsed = f.line.parse({"--help", "--nonsense"});
  ASSERT_TRUE(parsed);
  ASSERT_TRUE(parsed->has_value());
  const std::string& help = **parsed;
  EXPECT_TRUE(help.starts_with("Usage: volferry test A B\n\nTests.\n"));
  EXPECT_THAT(help, HasSubstr("\nFirst group:\n  -f, --flag                  a flag\n"));
  EXPECT_THAT(help, HasSubstr("      --on, --no-on           on by default\n"));
  EXPECT_THAT(help, HasSubstr("\nSecond group:\n  -t, --text TEXT             a text\n"));
  EXPECT_TRUE(help.ends_with("\nEnd.\n"));
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = help.find('\n', at);
    EXPECT_LE(end - at, 100u) << help.substr(at, end - at);
    at = end + 1;
  }
}

TEST(NearestName, FindsTypingErrorsOnly) {
  const std::vector<std::string> known = {"--delete", "--delta", "--io", "--exclude-from"};
  EXPECT_EQ(nearest_name("--delte", known), "--delete");
  EXPECT_EQ(nearest_name("--dlete", known), "--delete");
  EXPECT_EQ(nearest_name("--exclude", known), "--exclude-from");
  EXPECT_EQ(nearest_name("--foo", known), std::nullopt);
  EXPECT_EQ(nearest_name("--", known), std::nullopt);
}

}  // namespace
}  // namespace volferry::cli
