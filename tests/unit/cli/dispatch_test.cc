// SPDX-License-Identifier: Apache-2.0
// Whole commands, as far as they need no volume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "tests/unit/cli/captured_console.h"

namespace volferry::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};
Outcome run(const CommandArguments& arguments) {
  CapturedConsole captured;
  Outcome outcome;
  outcome.code = run_command(arguments, captured.console());
  outcome.out = captured.out();
  outcome.err = captured.err();
  return outcome;
}

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "volferry-cli-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
};

TEST(RunCommand, HelpInItsForms) {
  for (const CommandArguments& arguments : {CommandArguments{"--help"}, {"-h"}, {"help"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, StartsWith("Usage: volferry COMMAND"));
    EXPECT_EQ(outcome.err, "");
  }
  for (const char* command : {"sync", "serve", "verify", "bench", "keygen", "version"}) {
    const Outcome outcome = run({command, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, StartsWith(std::string("Usage: volferry ") + command));
    EXPECT_EQ(run({"help", command}).out, outcome.out);
  }
}

TEST(RunCommand, UsageErrorsAreOneLineAndExitTwo) {
  for (const CommandArguments& arguments : {CommandArguments{},
                                            {"frobnicate"},
                                            {"sync"},
                                            {"verify", "a"},
                                            {"serve"},
                                            {"keygen", "x"},
                                            {"bench", "--seconds", "x"},
                                            {"version", "--bogus"},
                                            {"sync", "a", "tls://h"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("volferry: error: "));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("--help'"));
  }
}

TEST(RunCommand, AFailureWithJsonHasASummary) {
  const Outcome outcome = run({"sync", "--json", "a", "--bogus"});
  EXPECT_EQ(outcome.code, 2);
  const auto event = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(event["event"], "summary");
  EXPECT_EQ(event["result"], "failed");
  EXPECT_EQ(event["exit_code"], 2);
}

TEST(RunCommand, ReportsALostReport) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  {
    Console console({full, stderr, false, false});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run_command({"keygen"}, console), 1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("standard output"));
  }
  std::fclose(full);
}

TEST(Keygen, PrintsAFreshKey) {
  const Outcome first = run({"keygen"});
  EXPECT_EQ(first.code, 0);
  EXPECT_THAT(first.out, ContainsRegex("^volferry:[0-9a-f]{64}\n$"));
  EXPECT_NE(run({"keygen"}).out, first.out);
  EXPECT_THAT(run({"keygen", "--identity", "node-7"}).out, StartsWith("node-7:"));
}

TEST_F(CommandTest, KeygenMakesAPrivateFileOnce) {
  const std::string path = directory_ + "/key";
  EXPECT_EQ(run({"keygen", "-o", path}).code, 0);
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_THAT(content.str(), ContainsRegex("^volferry:[0-9a-f]{64}\n$"));

  const Outcome again = run({"keygen", "-o", path});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr(path + ": it exists already"));
  std::stringstream after;
  after << std::ifstream(path).rdbuf();
  EXPECT_EQ(after.str(), content.str());
}

TEST_F(CommandTest, KeygenFollowsNoLink) {
  ASSERT_EQ(symlink((directory_ + "/target").c_str(), (directory_ + "/link").c_str()), 0);
  EXPECT_EQ(run({"keygen", "-o", directory_ + "/link"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/target"));
}

TEST_F(CommandTest, KeyFilesAreNamedWhenTheyFail) {
  const std::string missing = directory_ + "/none";
  const Outcome client = run({"sync", "--psk-file", missing, ".", "tls://127.0.0.1:1"});
  EXPECT_EQ(client.code, 2);
  EXPECT_THAT(client.err, HasSubstr(missing));
  const Outcome server = run({"serve", "--psk-file", missing, "--root", directory_});
  EXPECT_EQ(server.code, 2);
  EXPECT_THAT(server.err, HasSubstr(missing));
}

TEST_F(CommandTest, AnUnknownIdentityIsNamed) {
  const std::string path = directory_ + "/key";
  ASSERT_EQ(run({"keygen", "-o", path}).code, 0);
  const Outcome outcome =
      run({"sync", "--psk-file", path, "--psk-identity", "other", ".", "tls://127.0.0.1:1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'other'"));
}

TEST(Version, TextAndJson) {
  EXPECT_THAT(run({"version"}).out, StartsWith("volferry "));
  EXPECT_EQ(run({"--version"}).out, run({"version"}).out);
  const auto json = nlohmann::json::parse(run({"version", "--json"}).out);
  EXPECT_EQ(json["protocol"], "1.0");
  EXPECT_TRUE(json["libraries"].contains("openssl"));
  EXPECT_EQ(json["io_backends"].back(), "threads");
}

}  // namespace
}  // namespace volferry::cli
