// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint.h"

#include <gtest/gtest.h>

namespace volferry::cli {
namespace {

std::string local(std::string_view text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return "error: " + endpoint.error().message();
  const auto* found = std::get_if<LocalEndpoint>(&*endpoint);
  return found != nullptr ? found->path : "not local";
}

// user|host|port|path
std::string ssh(std::string_view text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return "error: " + endpoint.error().message();
  const auto* found = std::get_if<SshEndpoint>(&*endpoint);
  if (found == nullptr) return "not ssh";
  return found->target.user + "|" + found->target.host + "|" + std::to_string(found->target.port) +
         "|" + found->path;
}

// host|port|subpath
std::string tls(std::string_view text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return "error: " + endpoint.error().message();
  const auto* found = std::get_if<TlsEndpoint>(&*endpoint);
  if (found == nullptr) return "not tls";
  return found->target.host + "|" + std::to_string(found->target.port) + "|" + found->subpath;
}

TEST(ParseEndpoint, TakesPathsAsTheyAre) {
  for (const char* text : {"a", "/srv/data/", ".", "./a:b", "/a:b", "dir/a:b", "-x", "a b", "[x]",
                           "[a,b]", "@", "\xff\n"})
    EXPECT_EQ(local(text), text);
}

TEST(ParseEndpoint, ColonBeforeTheFirstSlashMeansSsh) {
  EXPECT_EQ(ssh("host:dir"), "|host|0|dir");
  EXPECT_EQ(ssh("host:/abs:with:colons"), "|host|0|/abs:with:colons");
  EXPECT_EQ(ssh("me@host:"), "me|host|0|.");
  EXPECT_EQ(ssh("a@b@host:x"), "a@b|host|0|x");
  EXPECT_EQ(ssh("[fe80::1%eth0]:/x"), "|fe80::1%eth0|0|/x");
  EXPECT_EQ(ssh("root@[::1]:x"), "root|::1|0|x");
}

TEST(ParseEndpoint, SshUrls) {
  EXPECT_EQ(ssh("ssh://host/srv"), "|host|0|/srv");
  EXPECT_EQ(ssh("ssh://me@host:2222/srv/x"), "me|host|2222|/srv/x");
  EXPECT_EQ(ssh("ssh://[::1]:22/x"), "|::1|22|/x");
  EXPECT_EQ(ssh("ssh://host/~/x"), "|host|0|x");
  EXPECT_EQ(ssh("ssh://host"), "|host|0|.");
}

TEST(ParseEndpoint, TlsUrls) {
  EXPECT_EQ(tls("tls://host"), "host|8000|");
  EXPECT_EQ(tls("tls://host:9000/"), "host|9000|");
  EXPECT_EQ(tls("tls://host/a/b"), "host|8000|a/b");
  EXPECT_EQ(tls("tls://[2001:db8::1]:1/a:b"), "2001:db8::1|1|a:b");
  EXPECT_EQ(tls("tls://[::1]"), "::1|8000|");
}

TEST(ParseEndpoint, RefusesAndNamesWhatIsWrong) {
  for (const char* text : {"",
                           ":x",
                           "@host:x",
                           "me@:x",
                           "ssh://",
                           "ssh:///x",
                           "ssh://host:0/x",
                           "ssh://host:99999/x",
                           "ssh://host:x/y",
                           "ssh://me@/x",
                           "tls://",
                           "tls:///x",
                           "tls://host:/x",
                           "tls://me@host/x",
                           "tls://::1/x",
                           "tls://[::1/x",
                           "tls://[::1]x/y",
                           "http://host/x",
                           "rsync://host/m",
                           "-oProxyCommand=x:y",
                           "ssh://-oProxyCommand=x/y",
                           "-l@host:x",
                           "ho st:x",
                           "[::1:x]y:z"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code, Code::kUsage) << text;
  }
  EXPECT_NE(parse_endpoint("tls://me@host").error().message().find("tls://me@host"),
            std::string::npos);
}

TEST(ParseListen, AddressesAndPorts) {
  const auto all = parse_listen("[::]:8000");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->host, "");
  EXPECT_EQ(all->port, 8000);
  EXPECT_EQ(parse_listen(":0")->port, 0);
  EXPECT_EQ(parse_listen(":0")->host, "");
  EXPECT_EQ(parse_listen("127.0.0.1:9")->host, "127.0.0.1");
  EXPECT_EQ(parse_listen("[::1]:9")->host, "::1");
  EXPECT_EQ(parse_listen("localhost")->port, kDefaultPort);
  EXPECT_EQ(parse_listen("*:5")->host, "");
  for (const char* text : {"", "::1", "[::1", "a:b", ":65536", "host:", ":-1"})
    EXPECT_FALSE(parse_listen(text)) << text;
}

}  // namespace
}  // namespace volferry::cli
