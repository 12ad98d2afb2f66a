// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/captured_console.h"

namespace volferry::cli {
namespace {

TEST(Console, LinesGoWhereTheyBelong) {
  CapturedConsole captured;
  captured.console().out("one");
  captured.console().err("two");
  captured.console().out_text("three\n");
  EXPECT_EQ(captured.out(), "one\nthree\n");
  EXPECT_EQ(captured.err(), "two\n");
  EXPECT_TRUE(captured.console().out_ok());
}

TEST(Console, EveryLineRemovesTheStatusFirst) {
  CapturedConsole captured(true);
  captured.console().set_status("50 %");
  captured.console().err("warning");
  captured.console().err("again");
  EXPECT_EQ(captured.err(), "\r50 %\x1b[K\r\x1b[Kwarning\nagain\n");
  captured.console().set_status("60 %");
  captured.console().out("item");
  captured.console().clear_status();
  EXPECT_EQ(captured.err(), "\r50 %\x1b[K\r\x1b[Kwarning\nagain\n\r60 %\x1b[K\r\x1b[K");
  EXPECT_EQ(captured.out(), "item\n");
}

TEST(Console, NoStatusWithoutATerminal) {
  CapturedConsole captured(false);
  captured.console().set_status("50 %");
  captured.console().clear_status();
  EXPECT_EQ(captured.err(), "");
}

TEST(Console, RemembersThatOutputWasLost) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  {
    Console console({full, full, false, false});
    console.out("lost");
    EXPECT_FALSE(console.out_ok());
    EXPECT_FALSE(console.out_ok());
  }
  std::fclose(full);
}

}  // namespace
}  // namespace volferry::cli
