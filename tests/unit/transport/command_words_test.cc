// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/command_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volferry::transport {
namespace {

using ::testing::ElementsAre;

TEST(SplitWords, AsAShellWould) {
  EXPECT_THAT(*split_words("ssh -i  key\t-o x=y"), ElementsAre("ssh", "-i", "key", "-o", "x=y"));
  EXPECT_THAT(*split_words("a 'b c' \"d e\" f\\ g"), ElementsAre("a", "b c", "d e", "f g"));
  EXPECT_THAT(*split_words("a'b'\"c\"d"), ElementsAre("abcd"));
  EXPECT_THAT(*split_words("'a\\b' \"a\\\"b\\c\""), ElementsAre("a\\b", "a\"b\\c"));
  EXPECT_THAT(*split_words("a ''"), ElementsAre("a", ""));
  EXPECT_THAT(*split_words("$HOME `x` $(y) *"), ElementsAre("$HOME", "`x`", "$(y)", "*"));
}

TEST(SplitWords, RefusesWhatIsNotFinished) {
  for (const char* text : {"", "   ", "a 'b", "a \"b", "a\\"}) {
    const auto words = split_words(text);
    ASSERT_FALSE(words) << text;
    EXPECT_EQ(words.error().code, Code::kUsage);
  }
}

TEST(QuoteWord, SurvivesASecondSplit) {
  for (const char* word : {"", "plain", "two words", "it's", "$(id)", "\\", "a\nb", "-rf", "'"}) {
    EXPECT_THAT(*split_words(quote_word(word)), ElementsAre(word));
  }
}

}  // namespace
}  // namespace volferry::transport
