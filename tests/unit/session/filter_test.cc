// SPDX-License-Identifier: Apache-2.0
#include "engine/session/filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace volferry::session {
namespace {

bool matches(const std::string& pattern, const std::string& path, bool directory = false) {
  return Filter({{false, pattern}}).excluded(path, directory);
}

TEST(Filter, WithoutRulesEverythingIsIncluded) {
  EXPECT_TRUE(Filter().empty());
  EXPECT_FALSE(Filter().excluded("a/b", false));
  EXPECT_TRUE(Filter({{false, ""}}).empty());
}

TEST(Filter, PlainNameMatchesTheLastComponentAnywhere) {
  EXPECT_TRUE(matches("foo", "foo"));
  EXPECT_TRUE(matches("foo", "a/b/foo"));
  EXPECT_FALSE(matches("foo", "foobar"));
  EXPECT_FALSE(matches("foo", "foo/bar"));
  EXPECT_FALSE(matches("foo", "barfoo"));
}

TEST(Filter, LeadingSlashAnchorsAtTheRoot) {
  EXPECT_TRUE(matches("/foo", "foo"));
  EXPECT_FALSE(matches("/foo", "a/foo"));
  EXPECT_TRUE(matches("/a/foo", "a/foo"));
  EXPECT_FALSE(matches("/a/foo", "b/a/foo"));
}

TEST(Filter, InnerSlashMatchesTheEndOfThePath) {
  EXPECT_TRUE(matches("a/foo", "a/foo"));
  EXPECT_TRUE(matches("a/foo", "b/a/foo"));
  EXPECT_FALSE(matches("a/foo", "ba/foo"));
  EXPECT_FALSE(matches("a/foo", "a/foo/c"));
}

TEST(Filter, TrailingSlashMatchesDirectoriesOnly) {
  EXPECT_TRUE(matches("foo/", "foo", true));
  EXPECT_FALSE(matches("foo/", "foo", false));
  EXPECT_TRUE(matches("foo/", "a/foo", true));
}

TEST(Filter, StarStopsAtASlash) {
  EXPECT_TRUE(matches("*.o", "main.o"));
  EXPECT_TRUE(matches("*.o", "src/main.o"));
  EXPECT_TRUE(matches("*.o", ".o"));
  EXPECT_TRUE(matches("/a/*", "a/b"));
  EXPECT_FALSE(matches("/a/*", "a/b/c"));
  EXPECT_FALSE(matches("/*/c", "a/b/c"));
  EXPECT_TRUE(matches("*", "anything"));
}

TEST(Filter, DoubleStarCrossesSlashes) {
  EXPECT_TRUE(matches("/a/**", "a/b/c"));
  EXPECT_FALSE(matches("/a/**", "a", true));
  EXPECT_TRUE(matches("/a/**/z", "a/b/c/z"));
  EXPECT_FALSE(matches("/a/**/z", "a/z"));
  EXPECT_TRUE(matches("a**z", "x/a/b/z"));
}

TEST(Filter, QuestionMarkIsOneByteButNoSlash) {
  EXPECT_TRUE(matches("f?o", "fxo"));
  EXPECT_FALSE(matches("f?o", "fo"));
  EXPECT_FALSE(matches("/f?o", "f/o"));
}

TEST(Filter, Classes) {
  EXPECT_TRUE(matches("[abc]x", "bx"));
  EXPECT_FALSE(matches("[abc]x", "dx"));
  EXPECT_TRUE(matches("[a-f0-9]", "7"));
  EXPECT_FALSE(matches("[a-f0-9]", "g"));
  EXPECT_TRUE(matches("[!a-c]", "d"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[]]", "]"));
  EXPECT_TRUE(matches("[a-]", "-"));
  EXPECT_TRUE(matches("[\\]]", "]"));
  EXPECT_FALSE(matches("/a[!x]b", "a/b"));
  EXPECT_TRUE(matches("[x", "[x"));  // no end: an ordinary byte
}

TEST(Filter, BackslashTakesTheNextByteAsItIs) {
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_TRUE(matches("a\\?", "a?"));
  EXPECT_TRUE(matches("\\[a]", "[a]"));
  EXPECT_TRUE(matches("a\\\\b", "a\\b"));
}

TEST(Filter, TripleStarMatchesTheDirectoryAndAllBelow) {
  EXPECT_TRUE(matches("dir/***", "dir", true));
  EXPECT_FALSE(matches("dir/***", "dir", false));
  EXPECT_TRUE(matches("dir/***", "dir/a"));
  EXPECT_TRUE(matches("dir/***", "dir/a/b"));
  EXPECT_TRUE(matches("/dir/***", "dir", true));
  EXPECT_FALSE(matches("/dir/***", "x/dir", true));
  EXPECT_FALSE(matches("dir/***", "dirt", true));
}

TEST(Filter, FirstMatchWins) {
  const Filter filter({{true, "keep.o"}, {false, "*.o"}, {true, "*.o"}});
  EXPECT_FALSE(filter.excluded("keep.o", false));
  EXPECT_TRUE(filter.excluded("other.o", false));
  const Filter only({{true, "/src/"}, {true, "/src/***"}, {false, "*"}});
  EXPECT_FALSE(only.excluded("src", true));
  EXPECT_FALSE(only.excluded("src/a.c", false));
  EXPECT_TRUE(only.excluded("doc", true));
}

TEST(Filter, BytesAreNotCharacters) {
  EXPECT_TRUE(matches("\xff*", "\xff\xfe"));
  EXPECT_TRUE(matches("[\x80-\xff]", "\xc3"));
}

// Patterns that take a backtracking matcher 2^60 steps. Each of these would run past any patience;
// that the test ends is the bound.
TEST(Filter, CatastrophicPatternsStayLinear) {
  std::string stars;
  for (int i = 0; i < 60; ++i) stars += "*a";
  const std::string text(250, 'a');
  EXPECT_FALSE(matches(stars + "b", text));
  EXPECT_TRUE(matches(stars, text));
  std::string deep = "/";
  for (int i = 0; i < 30; ++i) deep += "**/x";
  std::string path;
  for (int i = 0; i < 200; ++i) path += "x/";
  EXPECT_FALSE(matches(deep + "y", path + "z"));
}

}  // namespace
}  // namespace volferry::session
