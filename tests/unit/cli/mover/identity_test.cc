// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/identity.h"

#include <gtest/gtest.h>

#include "cli/mover/conflict.h"

namespace volferry::cli::mover {
namespace {

Result<std::optional<Identity>> decoded(std::string_view text) {
  return decode_identity({text.begin(), text.end()});
}

Identity example() {
  return {.replication_id = "db",
          .epoch = "3-f00d",
          .seq = 42,
          .attempt = "7b0f4f1e-9f0b-4c0e-8f3a-5d1f8f1f2b11",
          .volume_mode = VolumeMode::kBlock,
          .size = 1ull << 40,
          .source_volume_id = "csi.example/\"handle\"",
          .final_sync_id = "r1",
          .acknowledged = "0123456789ab"};
}

TEST(Identity, SurvivesTheWire) {
  const auto back = decode_identity(encode_identity(example()));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, example());
}

TEST(Identity, NoTupleIsNoError) {
  const auto none = decode_identity({});
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Identity, OrderAndUnknownFieldsDoNotMatter) {
  const auto found = decoded(
      R"({"colour":"blue","nested":{"a":[1,{"b":[[[]]]}]},"volume_mode":"Block","seq":7,"v":1})");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ((*found)->seq, 7u);
  EXPECT_EQ((*found)->volume_mode, VolumeMode::kBlock);
  EXPECT_EQ((*found)->attempt, "");
}

TEST(Identity, RefusesWhatItCannotUse) {
  const std::string long_text(300, 'x');
  const std::string tail = R"(,"volume_mode":"Block","v":1})";
  for (const std::string& bad : {std::string("x"),
                                 std::string("[]"),
                                 std::string("null"),
                                 std::string("{"),
                                 std::string(R"({"volume_mode":"Block"})"),
                                 std::string(R"({"v":1})"),
                                 std::string(R"({"v":2,"volume_mode":"Block"})"),
                                 std::string(R"({"v":1,"volume_mode":"block"})"),
                                 std::string(R"({"seq":-1)") + tail,
                                 R"({"seq":9223372036854775808)" + tail,
                                 R"({"seq":"7")" + tail,
                                 R"({"seq":1.5)" + tail,
                                 R"({"attempt":7)" + tail,
                                 R"({"attempt":"a\nb")" + tail,
                                 R"({"epoch":"x")" + tail,
                                 R"({"attempt":"\u001b[31m")" + tail,
                                 R"({"source_volume_id":")" + long_text + "\"" + tail,
                                 R"({"replication_id":")" + std::string(64, 'x') + "\"" + tail,
                                 "{\"attempt\":\"\xff\"" + tail,
                                 std::string(5000, ' ')}) {
    const auto result = decoded(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, Code::kIdentity) << bad;
    // Nothing of it is repeated but the names of fields.
    EXPECT_EQ(result.error().message().find("[31m"), std::string::npos);
  }
}

TEST(Identity, DeepNestingIsNoStack) {
  std::string text = R"({"v":1,"volume_mode":"Block","x":)";
  text += std::string(2000, '[') + std::string(2000, ']') + "}";
  const auto result = decoded(text);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ((*result)->volume_mode, VolumeMode::kBlock);
}

TEST(Identity, ModesMustAgree) {
  Identity peer = example();
  EXPECT_TRUE(check_identities(Role::kSource, example(), peer));
  peer.volume_mode = VolumeMode::kFilesystem;
  const auto status = check_identities(Role::kSource, example(), peer);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIdentity);
  EXPECT_NE(status.error().message().find("Block at the source, Filesystem at the destination"),
            std::string::npos);
}

}  // namespace
}  // namespace volferry::cli::mover
