// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace volferry::wire {
namespace {

// The example of docs/protocol.md, "An example".
constexpr char kExampleHex[] =
    "42010000"     // type 66 RangeRun, flag optional, stream 0
    "08000000"     // head of 8 bytes
    "00000000"     // no body
    "00000000"     // no checksum
    "07"           // req 7
    "02"           // kind same
    "03"           // first range 3
    "8080808010";  // count 2^32

TEST(Frame, ExampleOfTheDocument) {
  Frame frame = make_frame(RangeRun{7, OpKind::kSame, 3, 1ull << 32});
  frame.flags = kFrameOptional;
  EXPECT_EQ(base::to_hex(frame_bytes(frame, 0, false)), kExampleHex);
}

TEST(Frame, HeaderSurvives) {
  const FrameHeader header{65, 1, 513, 1000, 1 << 20, 0xdeadbeef};
  std::array<std::uint8_t, kFrameHeaderBytes> bytes{};
  encode_header(header, bytes);
  const Result<FrameHeader> decoded = decode_header(bytes, kMaxHead);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->type, 65);
  EXPECT_EQ(decoded->flags, 1);
  EXPECT_EQ(decoded->stream, 513);
  EXPECT_EQ(decoded->head_length, 1000u);
  EXPECT_EQ(decoded->body_length, 1u << 20);
  EXPECT_EQ(decoded->checksum, 0xdeadbeef);
}

TEST(Frame, LengthsPastTheLimitsAreRefused) {
  std::array<std::uint8_t, kFrameHeaderBytes> bytes{};
  encode_header({1, 0, 0, kMaxHelloHead + 1, 0, 0}, bytes);
  EXPECT_FALSE(decode_header(bytes, kMaxHelloHead));
  EXPECT_TRUE(decode_header(bytes, kMaxHead));
  encode_header({1, 0, 0, 0, kMaxBody + 1, 0}, bytes);
  EXPECT_FALSE(decode_header(bytes, kMaxHead));
  EXPECT_FALSE(decode_header(base::Bytes(bytes).first(15), kMaxHead));
}

TEST(Frame, OtherProgramsAreNamed) {
  const auto refused = [](std::string_view greeting) {
    const std::vector<std::uint8_t> bytes(greeting.begin(), greeting.end());
    const auto header = decode_header(bytes, kMaxHelloHead);
    EXPECT_FALSE(header) << greeting;
    return header ? std::string() : header.error().message();
  };
  EXPECT_NE(refused("@RSYNCD: 31.0 sh").find("the peer speaks rsync and"), std::string::npos);
  EXPECT_NE(refused("BSNC000201234567").find("the peer speaks diskrsync and"), std::string::npos);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n").find("VolSync"), std::string::npos);
}

TEST(Frame, ChargeCountsAWholeSlotForLargeBodies) {
  Frame frame;
  frame.head.resize(10);
  EXPECT_EQ(frame.charge(), kFrameCharge + 10);
  frame.body = base::Buffer::heap(kMaxBody);
  frame.body.set_size(kHeapBodyBytes);
  EXPECT_EQ(frame.charge(), kFrameCharge + 10 + kHeapBodyBytes);
  frame.body.set_size(kHeapBodyBytes + 1);
  EXPECT_EQ(frame.charge(), kFrameCharge + 10 + kMaxBody);
}

TEST(Frame, ChecksumCoversHeadThenBody) {
  const std::vector<std::uint8_t> head = {1, 2, 3};
  const std::vector<std::uint8_t> body = {4, 5};
  const std::vector<std::uint8_t> both = {1, 2, 3, 4, 5};
  EXPECT_EQ(frame_checksum(head, body), frame_checksum(both, {}));
  EXPECT_NE(frame_checksum(head, {}), frame_checksum(both, {}));
  // The empty XXH64 with seed 0 is ef46db3751d8e999.
  EXPECT_EQ(frame_checksum({}, {}), 0x51d8e999u);
}

TEST(Frame, ClassesAreAsDocumented) {
  EXPECT_EQ(frame_class(MessageType::kDirList), FrameClass::kList);
  EXPECT_EQ(frame_class(MessageType::kListEnd), FrameClass::kList);
  EXPECT_EQ(frame_class(MessageType::kPack), FrameClass::kData);
  EXPECT_EQ(frame_class(MessageType::kFileEnd), FrameClass::kData);
  EXPECT_EQ(frame_class(MessageType::kRollingSignature), FrameClass::kControl);
  EXPECT_EQ(frame_class(MessageType::kFinish), FrameClass::kControl);
}

}  // namespace
}  // namespace volferry::wire
