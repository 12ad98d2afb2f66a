// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <utility>
#include <vector>

namespace volferry::cli::mover {
namespace {

Settings parsed(Role role, const Environment& environment) {
  auto settings = parse_settings(role, environment);
  EXPECT_TRUE(settings) << settings.error().message();
  return settings ? *settings : Settings{};
}

TEST(Settings, DefaultsOfASource) {
  const Settings settings = parsed(Role::kSource, {{"VOLFERRY_ADDRESS", "replica"}});
  EXPECT_EQ(settings.address, "replica");
  EXPECT_EQ(settings.port, 8000);
  EXPECT_EQ(settings.keys, "/keys");
  EXPECT_TRUE(settings.options.delete_extra);
  EXPECT_TRUE(settings.options.owner && settings.options.xattrs && settings.options.devices);
  EXPECT_FALSE(settings.options.verify || settings.options.inplace);
  EXPECT_EQ(settings.options.retries, 5u);
  EXPECT_EQ(settings.options.connect_timeout, std::chrono::seconds(60));
  EXPECT_EQ(settings.options.timeout, std::chrono::seconds(60));
  EXPECT_EQ(settings.sync_timeout.count(), 0);
  ASSERT_TRUE(settings.metrics);
  EXPECT_EQ(settings.metrics->port, 9100);
  EXPECT_EQ(settings.metrics->host, "");
  EXPECT_EQ(settings.log_level, base::LogLevel::kInfo);
}

TEST(Settings, DefaultsOfADestination) {
  const Settings settings = parsed(Role::kDestination, {});
  EXPECT_EQ(settings.listen.host, "");
  EXPECT_EQ(settings.listen.port, 8000);
}

TEST(Settings, VariablesOfServicesAreNobodysSettings) {
  // A destination beside Services `volferry` and `volferry-web`; kubectl exec ... env.
  const std::vector<std::pair<const char*, const char*>> links = {
      {"VOLFERRY_SERVICE_HOST", "10.0.0.1"},
      {"VOLFERRY_SERVICE_PORT", "9443"},
      {"VOLFERRY_SERVICE_PORT_HTTPS", "9443"},
      {"VOLFERRY_PORT", "tcp://10.0.0.1:9443"},
      {"VOLFERRY_PORT_9443_TCP", "tcp://10.0.0.1:9443"},
      {"VOLFERRY_PORT_9443_TCP_PROTO", "tcp"},
      {"VOLFERRY_PORT_9443_TCP_PORT", "9443"},
      {"VOLFERRY_PORT_9443_TCP_ADDR", "10.0.0.1"},
      {"VOLFERRY_WEB_SERVICE_HOST", "10.0.0.2"},
      {"VOLFERRY_WEB_PORT", "udp://10.0.0.2:53"}};
  const std::vector<std::pair<const char*, const char*>> settings = {
      {"VOLFERRY_ADDRESS", "replica"}, {"VOLFERRY_COLOUR", "blue"}};
  for (const auto& [name, text] : links) ::setenv(name, text, 1);
  for (const auto& [name, text] : settings) ::setenv(name, text, 1);
  const Environment found = process_environment();
  ::setenv("VOLFERRY_PORT", "8001", 1);
  const Environment with_port = process_environment();
  for (const auto& [name, text] : links) {
    EXPECT_FALSE(found.contains(name)) << name;
    ::unsetenv(name);
  }
  for (const auto& [name, text] : settings) {
    EXPECT_TRUE(found.contains(name)) << name;
    ::unsetenv(name);
  }
  EXPECT_EQ(with_port.find("VOLFERRY_PORT")->second, "8001");
}

TEST(Settings, EmptyIsUnset) {
  const Settings settings =
      parsed(Role::kDestination, {{"VOLFERRY_LISTEN", ""}, {"VOLFERRY_RETRIES", ""}});
  EXPECT_EQ(settings.listen.port, 8000);
  EXPECT_EQ(settings.options.retries, 5u);
}

TEST(Settings, AddressesWithAndWithoutBrackets) {
  const auto address = [](const char* text) {
    return parsed(Role::kSource, {{"VOLFERRY_ADDRESS", text}}).address;
  };
  EXPECT_EQ(address("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(address("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(address("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(address("vf.ns.svc.clusterset.local"), "vf.ns.svc.clusterset.local");
  for (const char* bad : {"[::1]:8000", "a b", "-x", "user@host", "host/path", "[", "a\nb"})
    EXPECT_FALSE(parse_settings(Role::kSource, {{"VOLFERRY_ADDRESS", bad}})) << bad;
}

TEST(Settings, ErrorsNameTheVariable) {
  const auto unknown = parse_settings(Role::kDestination, {{"VOLFERRY_COLOUR", "blue"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUsage);
  EXPECT_TRUE(unknown.error().context.starts_with("VOLFERRY_COLOUR: "));
  EXPECT_EQ(unknown.error().context.find("blue"), std::string::npos);
  const auto bad = parse_settings(Role::kDestination, {{"VOLFERRY_MEMORY", "1"}});
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().context.starts_with("VOLFERRY_MEMORY: '1'")) << bad.error().context;
  const auto needed = parse_settings(Role::kSource, {});
  ASSERT_FALSE(needed);
  EXPECT_TRUE(needed.error().context.starts_with("VOLFERRY_ADDRESS: "));
}

TEST(Settings, UnknownEvenIfEmpty) {
  EXPECT_FALSE(parse_settings(Role::kDestination, {{"VOLFERRY_COLOUR", ""}}));
  EXPECT_FALSE(parse_settings(Role::kDestination, {{"VOLFERRY_", ""}}));
}

TEST(Settings, ResourcesAsOnTheCommandLine) {
  const Settings settings = parsed(Role::kDestination, {{"VOLFERRY_STREAMS", "3"},
                                                        {"VOLFERRY_THREADS", "2"},
                                                        {"VOLFERRY_MEMORY", "64Mi"},
                                                        {"VOLFERRY_IO", "threads"},
                                                        {"VOLFERRY_DIRECT", "off"},
                                                        {"VOLFERRY_BANDWIDTH_LIMIT", "5M/s"}});
  EXPECT_EQ(settings.options.streams, 3u);
  EXPECT_EQ(settings.options.threads, 2u);
  EXPECT_EQ(settings.options.memory_bytes, 64ull << 20);
  EXPECT_EQ(settings.options.io, IoChoice::kThreads);
  EXPECT_EQ(settings.options.direct, DirectChoice::kOff);
  EXPECT_EQ(settings.options.bandwidth_limit, 5'000'000u);
}

TEST(Settings, MetricsAddress) {
  EXPECT_FALSE(parsed(Role::kDestination, {{"VOLFERRY_METRICS", "off"}}).metrics);
  const auto metrics = parsed(Role::kDestination, {{"VOLFERRY_METRICS", "[::1]:0"}}).metrics;
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->host, "::1");
  EXPECT_EQ(metrics->port, 0);
  for (const char* bad : {"9100", "127.0.0.1", "[::1]", "127.0.0.1:x", "::1:9100"})
    EXPECT_FALSE(parse_metrics_address(bad)) << bad;
}

TEST(TerminationLog, HasADefault) {
  EXPECT_EQ(termination_log({}), "/dev/termination-log");
  EXPECT_EQ(termination_log({{"VOLFERRY_TERMINATION_LOG", ""}}), "/dev/termination-log");
  EXPECT_EQ(termination_log({{"VOLFERRY_TERMINATION_LOG", "/tmp/x"}}), "/tmp/x");
}

}  // namespace
}  // namespace volferry::cli::mover
