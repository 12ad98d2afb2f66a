// SPDX-License-Identifier: Apache-2.0
#include "cli/volsync/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volferry::cli::volsync {
namespace {

using mover::Role;
using mover::Settings;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Settings parsed(Role role, const mover::Environment& environment) {
  auto settings = read_settings(role, environment);
  EXPECT_TRUE(settings) << settings.error().message();
  return settings ? *settings : Settings{};
}

std::string refused(Role role, const mover::Environment& environment) {
  const auto settings = read_settings(role, environment);
  EXPECT_FALSE(settings);
  if (settings) return {};
  EXPECT_EQ(settings.error().code, Code::kUsage);
  return settings.error().message();
}

TEST(VolsyncEnvironment, WhatTheOperatorGivesASource) {
  const Settings settings =
      parsed(Role::kSource, {{"DESTINATION_ADDRESS", "fd00::7"}, {"PRIVILEGED_MOVER", "0"}});
  EXPECT_EQ(settings.address, "fd00::7");
  EXPECT_EQ(settings.port, 8000);
  EXPECT_EQ(settings.keys, "/keys");
  EXPECT_TRUE(settings.options.one_file_system);
  EXPECT_TRUE(settings.options.delete_extra);
  EXPECT_TRUE(settings.whole_only);
  EXPECT_THAT(settings.pauses,
              ElementsAre(seconds(2), seconds(4), seconds(8), seconds(16), seconds(32)));
  EXPECT_EQ(settings.options.connect_timeout, seconds(10));
}

TEST(VolsyncEnvironment, WhatTheOperatorGivesADestination) {
  const Settings settings = parsed(Role::kDestination, {{"PRIVILEGED_MOVER", "0"}});
  EXPECT_EQ(settings.listen.host, "");
  EXPECT_EQ(settings.listen.port, 8000);
  EXPECT_TRUE(settings.stop_at_stranger);
}

TEST(VolsyncEnvironment, OnlyAPrivilegedMoverChangesTheRoot) {
  EXPECT_TRUE(parsed(Role::kDestination, {}).keep_root);
  EXPECT_TRUE(parsed(Role::kDestination, {{"PRIVILEGED_MOVER", "0"}}).keep_root);
  EXPECT_FALSE(parsed(Role::kDestination, {{"PRIVILEGED_MOVER", "1"}}).keep_root);
  EXPECT_THAT(refused(Role::kDestination, {{"PRIVILEGED_MOVER", "yes"}}),
              StartsWith("PRIVILEGED_MOVER: 'yes'"));
}

TEST(VolsyncEnvironment, TheAddressHasToBeNamed) {
  const std::string why = refused(Role::kSource, {{"PRIVILEGED_MOVER", "0"}});
  EXPECT_THAT(why, StartsWith("DESTINATION_ADDRESS: "));
  EXPECT_THAT(why, HasSubstr("spec.rsyncTLS.address"));
}

TEST(VolsyncEnvironment, ErrorsNameTheVariableThatWasGiven) {
  EXPECT_THAT(refused(Role::kSource, {{"DESTINATION_ADDRESS", "a b"}}),
              StartsWith("DESTINATION_ADDRESS: 'a b'"));
  EXPECT_THAT(
      refused(Role::kSource, {{"DESTINATION_ADDRESS", "host"}, {"DESTINATION_PORT", "80000"}}),
      StartsWith("DESTINATION_PORT: "));
  EXPECT_THAT(refused(Role::kSource, {{"VOLFERRY_ADDRESS", "a b"}}),
              StartsWith("VOLFERRY_ADDRESS: "));
}

TEST(VolsyncEnvironment, OurOwnVariablesServeToo) {
  const Settings settings = parsed(Role::kSource, {{"DESTINATION_ADDRESS", "host"},
                                                   {"VOLFERRY_ADDRESS", "other"},
                                                   {"VOLFERRY_CONNECT_TIMEOUT", "3"},
                                                   {"VOLFERRY_VOLUME", "/srv"}});
  EXPECT_EQ(settings.address, "host");
  EXPECT_EQ(settings.options.connect_timeout, seconds(3));
  EXPECT_EQ(settings.volume, "/srv");
}

TEST(VolsyncEnvironment, EachMinimumOfTlsUpToOursIsKept) {
  for (const char* version : {"", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"})
    EXPECT_TRUE(read_settings(Role::kDestination, {{"SSL_VERSION_MIN", version}})) << version;
  EXPECT_THAT(refused(Role::kDestination, {{"SSL_VERSION_MIN", "TLSv1.4"}}),
              StartsWith("SSL_VERSION_MIN: 'TLSv1.4'"));
}

TEST(VolsyncEnvironment, DebuggingIsAskedForByAOne) {
  EXPECT_TRUE(wants_debugging({{"DEBUG_MOVER", "1"}}));
  EXPECT_FALSE(wants_debugging({{"DEBUG_MOVER", "0"}}));
  EXPECT_FALSE(wants_debugging({}));
}

}  // namespace
}  // namespace volferry::cli::volsync
