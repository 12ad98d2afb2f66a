// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/log_tail.h"

#include <gtest/gtest.h>

namespace volferry::cli::mover {
namespace {

TEST(CutText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abc", 2), "ab");
  EXPECT_EQ(cut_text("a\xc3\xbc", 2), "a");
  EXPECT_EQ(cut_text("\xe2\x82\xac", 2), "");
  EXPECT_EQ(cut_text("", 0), "");
}

TEST(LogTail, KeepsTheLastLinesWhole) {
  LogTail tail;
  EXPECT_EQ(tail.text(), "");
  for (int line = 0; line < 500; ++line) tail.add("line " + std::to_string(line));
  const std::string text = tail.text();
  EXPECT_LE(text.size(), LogTail::kMaxBytes);
  EXPECT_GT(text.size(), LogTail::kMaxBytes - 20);
  EXPECT_TRUE(text.ends_with("line 498\nline 499"));
  EXPECT_TRUE(text.starts_with("line "));
}

TEST(LogTail, CutsOneLongLine) {
  LogTail tail;
  tail.add("before");
  tail.add(std::string(5000, 'x'));
  EXPECT_EQ(tail.text(), std::string(LogTail::kMaxBytes - 1, 'x'));
}

TEST(TailLogger, KeepsWhatIsShown) {
  base::NullLogger next;
  LogTail tail;
  TailLogger logger(next, base::LogLevel::kInfo, tail);
  logger.log(base::LogLevel::kDebug, "detail");
  logger.log(base::LogLevel::kInfo, "a\nb");
  logger.log(base::LogLevel::kError, "bad");
  EXPECT_EQ(tail.text(), "info: a\\x0ab\nerror: bad");
}

}  // namespace
}  // namespace volferry::cli::mover
