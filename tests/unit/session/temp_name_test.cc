// SPDX-License-Identifier: Apache-2.0
#include "engine/session/temp_name.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace volferry::session {
namespace {

TEST(TempName, IsTheSameInEveryRun) {
  EXPECT_EQ(temp_name("data.img"), temp_name("data.img"));
  // Written down: a later version must find what an earlier one left.
  EXPECT_EQ(temp_name("").size(), temp_name("data.img").size());
}

TEST(TempName, DiffersFromNameToName) {
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(temp_name("file" + std::to_string(i)));
  EXPECT_EQ(names.size(), 1000u);
}

TEST(TempName, FitsWhateverTheName) {
  const std::string name = temp_name(std::string(255, 'x'));
  EXPECT_EQ(name.size(), 46u);
  EXPECT_TRUE(name.starts_with(".volferry-"));
  EXPECT_TRUE(name.ends_with(".tmp"));
}

TEST(TempName, IsRecognized) {
  EXPECT_TRUE(is_temp_name(temp_name("a")));
  EXPECT_TRUE(is_temp_name(temp_name(temp_name("a"))));
  EXPECT_TRUE(is_temp_name(".volferry-0123456789abcdef0123456789abcdef.tmp"));
}

TEST(TempName, OthersAreNot) {
  EXPECT_FALSE(is_temp_name(""));
  EXPECT_FALSE(is_temp_name(".volferry-.tmp"));
  EXPECT_FALSE(is_temp_name("xvolferry-0123456789abcdef0123456789abcdef.tmp"));
  EXPECT_FALSE(is_temp_name(".volferry-0123456789abcdef0123456789abcdeF.tmp"));
  EXPECT_FALSE(is_temp_name(".volferry-0123456789abcdef0123456789abcdeg.tmp"));
  EXPECT_FALSE(is_temp_name(".volferry-0123456789abcdef0123456789abcdef.tmq"));
  EXPECT_FALSE(is_temp_name(".volferry-0123456789abcdef0123456789abcdef0.tmp"));
}

}  // namespace
}  // namespace volferry::session
