// SPDX-License-Identifier: Apache-2.0
// connect_ssh with scripts in ssh's place.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/unit/transport/support.h"

#include "engine/transport/connect.h"

namespace volferry::transport {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::Collector;
using ::testing::HasSubstr;
using testing::TempDir;

const std::atomic<bool> kNoCancel{false};

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Ssh, ExitBeforeTheHandshakeNamesTheStatus) {
  const TempDir dir;
  const std::string script = dir.write("ssh", "#!/bin/sh\nexit 255\n", 0700);
  const auto channel =
      connect_ssh({"", "host"}, script, "volferry", {"serve", "--stdio"}, {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kConnect);
  EXPECT_THAT(channel.error().message(), HasSubstr("exit status 255"));
}

TEST(Ssh, MissingProgramIsNamed) {
  const auto channel =
      connect_ssh({"", "host"}, "/nonexistent/ssh -4", "volferry", {}, {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kConnect);
  EXPECT_THAT(channel.error().message(), HasSubstr("/nonexistent/ssh"));
}

TEST(Ssh, ArgumentsArriveAsGiven) {
  const TempDir dir;
  const std::string script = dir.write(
      "ssh",
      "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\n' \"$a\"; done >" + dir.file("args") +
          "\nshift 4\neval \"set -- $1\"\nfor a in \"$@\"; do printf '%s\\n' \"$a\"; done >" +
          dir.file("remote") + "\n",
      0700);
  const auto channel = connect_ssh({"me", "host", 2222}, script + " '-o x=y z'", "volferry",
                                   {"serve", "--root", "/a b/it's $(id)"}, {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_THAT(contents(dir.file("args")), HasSubstr("-o x=y z\n-p\n2222\nme@host\nvolferry "));
  EXPECT_EQ(contents(dir.file("remote")), "volferry\nserve\n--root\n/a b/it's $(id)\n");
}

TEST(Ssh, HostsThatLookLikeOptionsAreRefused) {
  const auto channel = connect_ssh({"", "-oProxyCommand=id"}, "ssh", "volferry", {}, {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kUsage);
}

TEST(Ssh, OtherOutputIsAProtocolError) {
  const TempDir dir;
  const std::string script =
      dir.write("ssh", "#!/bin/sh\necho 'Welcome to this machine, have a nice day'\ncat\n", 0700);
  const auto channel = connect_ssh({"", "host"}, script, "volferry", {}, {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kProtocol);
}

TEST(Ssh, CancelEndsTheWait) {
  const TempDir dir;
  const std::string script = dir.write("ssh", "#!/bin/sh\ncat >/dev/null\n", 0700);
  const std::atomic<bool> cancel{true};
  const auto channel = connect_ssh({"", "host"}, script, "volferry", {}, {}, cancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kCancelled);
}

// The script hands its stdin and stdout to this process by two named pipes, where a stdio server
// answers.
TEST(Ssh, SessionThroughTheChild) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo(dir.file("up").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(dir.file("down").c_str(), 0600), 0);
  // A background `cat` of a shell reads /dev/null unless its input is given explicitly.
  const std::string script = dir.write("ssh",
                                       "#!/bin/sh\nexec 3<&0\ncat <&3 >" + dir.file("up") +
                                           " &\nexec 3<&-\ncat <" + dir.file("down") + "\nwait\n",
                                       0700);
  Result<std::unique_ptr<Channel>> server = fail_with(Code::kInternal, "not run");
  std::thread far([&] {
    base::UniqueFd in(::open(dir.file("up").c_str(), O_RDONLY | O_CLOEXEC));
    base::UniqueFd out(::open(dir.file("down").c_str(), O_WRONLY | O_CLOEXEC));
    server = stdio_server(std::move(in), std::move(out), {});
  });
  auto client = connect_ssh({"", "host"}, script, "volferry", {}, {}, kNoCancel);
  far.join();
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(server) << server.error().message();
  Collector at_client;
  Collector at_server;
  at_server.credit_to(server->get());
  (*client)->start(at_client);
  (*server)->start(at_server);
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE((*client)->send(testing::data_frame(i, 1 << 20)));
  }
  EXPECT_EQ(at_server.wait_frames(8), 8u);
  std::thread other([&] { EXPECT_TRUE((*server)->finish(30s)); });
  EXPECT_TRUE((*client)->finish(30s));
  other.join();
  client->reset();
  server->reset();
}

}  // namespace
}  // namespace volferry::transport
