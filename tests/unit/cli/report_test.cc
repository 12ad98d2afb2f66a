// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace volferry::cli {
namespace {

using ::testing::StartsWith;

TEST(ErrorLine, NamesReasonAndHint) {
  EXPECT_EQ(error_line({Code::kSourceRead, ENOENT, "open /srv/x"}),
            "volferry: error: open /srv/x: No such file or directory; check the path");
  EXPECT_EQ(error_line({Code::kConnect, ECONNREFUSED, "connect host:8000"}),
            "volferry: error: connect host:8000: Connection refused; check the address, and that "
            "'volferry serve' (or sshd) runs there");
}

TEST(ErrorLine, KeepsAHintThatIsThere) {
  EXPECT_EQ(error_line({Code::kUsage, 0, "key: too open; chmod 600 it"}),
            "volferry: error: key: too open; chmod 600 it");
}

TEST(ErrorLine, EveryCodeHasAHintAndOneLine) {
  for (int code = 0; code <= static_cast<int>(Code::kMismatch); ++code) {
    const std::string line = error_line({static_cast<Code>(code), 0, "what\nwhere"});
    EXPECT_THAT(line, StartsWith("volferry: error: what\\x0awhere; ")) << code;
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 0);
  }
}

TEST(ErrorLine, AnEmptyContextStillSaysSomething) {
  EXPECT_THAT(error_line({Code::kIdentity, 0, ""}),
              StartsWith("volferry: error: IdentityRefused; "));
}

TEST(ItemErrorLine, PutsOperationPathAndReasonTogether) {
  EXPECT_EQ(item_error_line({"a/b\n", EACCES, "open"}),
            "volferry: error: open: a/b\\x0a: Permission denied; run as a user with the rights to "
            "it, or exclude it");
}

TEST(ItemErrorLine, RepeatsNothing) {
  EXPECT_EQ(item_text({"a", EIO, "read a: Input/output error"}), "read a: Input/output error");
  EXPECT_EQ(item_text({"a", EIO, "read"}), "read: a: Input/output error");
  EXPECT_EQ(item_text({"a", EIO, "read a/b"}), "read a/b: a: Input/output error");
  EXPECT_EQ(item_text({"a", 0, ""}), "a");
  EXPECT_EQ(item_text({"", EIO, "fsync"}), "fsync: Input/output error");
}

TEST(ItemErrorLine, ChangedSourcesHaveTheirOwnHint) {
  EXPECT_EQ(item_error_line({"a", 0, "changed while read", true}),
            "volferry: error: changed while read: a; run it again, best on a snapshot or with the "
            "writer stopped");
}

TEST(WarningLine, HasItsPrefixAndNoHint) {
  EXPECT_EQ(warning_line({"", 0, "owner of 3 items not set"}),
            "volferry: warning: owner of 3 items not set");
}

}  // namespace
}  // namespace volferry::cli
