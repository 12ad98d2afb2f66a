// SPDX-License-Identifier: Apache-2.0
#include "engine/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace volferry {
namespace {

TEST(Error, ExitCodesAreTheProductsContract) {
  EXPECT_EQ(exit_code(Code::kInternal), 1);
  EXPECT_EQ(exit_code(Code::kUsage), 2);
  EXPECT_EQ(exit_code(Code::kItemFailed), 3);
  EXPECT_EQ(exit_code(Code::kSourceChanged), 4);
  EXPECT_EQ(exit_code(Code::kConnect), 10);
  EXPECT_EQ(exit_code(Code::kAuth), 11);
  EXPECT_EQ(exit_code(Code::kProtocol), 12);
  EXPECT_EQ(exit_code(Code::kConnectionLost), 13);
  EXPECT_EQ(exit_code(Code::kDestinationFull), 20);
  EXPECT_EQ(exit_code(Code::kDestinationWrite), 21);
  EXPECT_EQ(exit_code(Code::kSourceRead), 22);
  EXPECT_EQ(exit_code(Code::kDestinationTooSmall), 23);
  EXPECT_EQ(exit_code(Code::kDifferences), 24);
  EXPECT_EQ(exit_code(Code::kIdentity), 30);
  EXPECT_EQ(exit_code(Code::kInterrupted), 130);
  EXPECT_EQ(exit_code(Code::kTerminated), 143);
}

TEST(Error, KnowsWhatARetryCanHeal) {
  EXPECT_TRUE(retryable(Code::kConnectionLost));
  EXPECT_TRUE(retryable(Code::kConnect));
  EXPECT_FALSE(retryable(Code::kAuth));
  EXPECT_FALSE(retryable(Code::kDestinationFull));
}

TEST(Error, ReasonsAreCamelCaseWords) {
  for (int i = 0; i <= static_cast<int>(Code::kMismatch); ++i) {
    const std::string_view word = reason(static_cast<Code>(i));
    ASSERT_FALSE(word.empty());
    EXPECT_TRUE(word.front() >= 'A' && word.front() <= 'Z') << word;
    EXPECT_EQ(word.find_first_of(" _-"), std::string_view::npos) << word;
  }
}

TEST(Error, MessageNamesTheSystemsReason) {
  EXPECT_EQ((Error{Code::kSystem, 0, "open a"}).message(), "open a");
  EXPECT_EQ((Error{Code::kSystem, ENOENT, "open a"}).message(),
            "open a: No such file or directory");
}

TEST(FailSys, TakesErrno) {
  errno = EACCES;
  const Status status = fail_sys("open b");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kSystem);
  EXPECT_EQ(status.error().os_errno, EACCES);
  EXPECT_EQ(Status(fail_sys("open b", EIO)).error().os_errno, EIO);
}

Status fails(bool wanted) {
  if (wanted) return fail_with(Code::kTimeout, "late");
  return {};
}
Result<std::unique_ptr<int>> makes(int value) {
  if (value < 0) return fail_with(Code::kUsage, "negative");
  return std::make_unique<int>(value);
}
Result<int> uses(bool fail, int value) {
  VF_TRY(fails(fail));
  VF_ASSIGN(const auto first, makes(value));
  VF_ASSIGN(const auto second, makes(value + 1));
  return *first + *second;
}

TEST(Macros, PassTheErrorOnOrTheValue) {
  EXPECT_EQ(uses(false, 3).value(), 7);
  EXPECT_EQ(uses(true, 3).error().code, Code::kTimeout);
  EXPECT_EQ(uses(false, -2).error().code, Code::kUsage);
}

}  // namespace
}  // namespace volferry
