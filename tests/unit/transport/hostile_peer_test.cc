// SPDX-License-Identifier: Apache-2.0
// A peer that breaks the protocol by hand: each breach must end the session with kProtocol, and the
// peer is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "tests/unit/transport/support.h"

#include "engine/transport/internal/fd_link.h"
#include "engine/transport/internal/frame_reader.h"
#include "engine/transport/internal/handshake.h"

namespace volferry::transport {
namespace {

using testing::Collector;
using ::testing::HasSubstr;

// A server channel whose client is a bare link.
class HostilePeer : public ::testing::Test {
 protected:
  void open(ChannelOptions options = {}) {
    testing::SocketEnds ends = testing::socket_ends();
    link_ = *make_fd_link(std::move(ends.in[0]), std::move(ends.out[0]));
    std::thread answering([&] {
      auto made = stdio_server(std::move(ends.in[1]), std::move(ends.out[1]), options);
      ASSERT_TRUE(made);
      channel_ = *std::move(made);
    });
    EXPECT_TRUE(hello_first(*link_, {}, {}));
    answering.join();
    channel_->start(handler_);
  }
  void send_raw(const wire::Frame& frame) { ASSERT_TRUE(send_frame(*link_, frame, {})); }
  void expect_protocol_error(const std::string& part) {
    const Status reason = handler_.wait_closed();
    ASSERT_FALSE(reason);
    EXPECT_EQ(reason.error().code, Code::kProtocol);
    EXPECT_THAT(reason.error().message(), HasSubstr(part));
    // The peer reads the refusal before the end.
    FrameReader reader(*link_, nullptr, false);
    const auto any = [](const wire::FrameHeader&) -> Status { return {}; };
    for (;;) {
      auto frame = reader.next(wire::kMaxHead, any, [] { return Wait{}; });
      ASSERT_TRUE(frame && *frame);
      if ((*frame)->type != wire::MessageType::kRefuse) continue;
      wire::Refuse refuse;
      ASSERT_TRUE(wire::decode((*frame)->head, refuse));
      EXPECT_EQ(refuse.code, 12u);
      EXPECT_THAT(refuse.text, HasSubstr(part));
      return;
    }
  }
  static wire::Frame frame_of(std::uint8_t type, std::uint8_t flags = 0) {
    wire::Frame frame;
    frame.type = static_cast<wire::MessageType>(type);
    frame.flags = flags;
    return frame;
  }

  Collector handler_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(HostilePeer, DataBeyondTheCredit) {
  ChannelOptions options;
  options.data_credit = 100'000;
  open(options);
  send_raw(testing::data_frame(1, 60'000));
  send_raw(testing::data_frame(2, 60'000));
  expect_protocol_error("more than its credit");
}

TEST_F(HostilePeer, ListsBeyondTheCredit) {
  ChannelOptions options;
  options.list_credit = 100;
  open(options);
  send_raw(testing::list_frame(1));
  send_raw(testing::list_frame(2));
  expect_protocol_error("more than its credit");
}

TEST_F(HostilePeer, InventedCredit) {
  open();
  send_raw(wire::make_frame(wire::Credit{0, 1}));
  expect_protocol_error("more credit than was spent");
}

TEST_F(HostilePeer, UnknownFrameType) {
  open();
  send_raw(frame_of(200, wire::kFrameOptional));  // skipped
  send_raw(testing::control_frame(1));
  EXPECT_EQ(handler_.wait_frames(1), 1u);
  send_raw(frame_of(200));
  expect_protocol_error("unknown frame type 200");
}

TEST_F(HostilePeer, BodyWhereNoneBelongs) {
  open();
  wire::Frame frame = testing::control_frame(1);
  frame.body = base::Buffer::copy_of(frame.head);
  send_raw(frame);
  expect_protocol_error("a body");
}

TEST_F(HostilePeer, HelloInsideTheSession) {
  open();
  send_raw(wire::make_frame(wire::Hello{}));
  expect_protocol_error("handshake inside");
}

TEST_F(HostilePeer, FrameAfterGoodbye) {
  open();
  send_raw(frame_of(static_cast<std::uint8_t>(wire::MessageType::kGoodbye)));
  send_raw(testing::control_frame(1));
  expect_protocol_error("after Goodbye");
}

TEST_F(HostilePeer, LengthsPastTheLimits) {
  open();
  std::array<std::uint8_t, wire::kFrameHeaderBytes> header{};
  wire::encode_header({65, 0, 0, 0xffffffff, 0, 0}, header);
  const base::Bytes piece(header);
  ASSERT_TRUE(link_->write({&piece, 1}, {}));
  expect_protocol_error("frame head of 4294967295 bytes");
}

TEST_F(HostilePeer, DamageIsSeenByTheChecksum) {
  open();
  std::vector<std::uint8_t> bytes = wire::frame_bytes(testing::data_frame(1, 1000), 0, true);
  bytes[600] ^= 4;
  const base::Bytes piece(bytes);
  ASSERT_TRUE(link_->write({&piece, 1}, {}));
  expect_protocol_error("checksum");
}

TEST_F(HostilePeer, EndInsideAFrame) {
  open();
  const std::vector<std::uint8_t> bytes = wire::frame_bytes(testing::data_frame(1, 1000), 0, true);
  const base::Bytes piece = base::Bytes(bytes).first(500);
  ASSERT_TRUE(link_->write({&piece, 1}, {}));
  link_->end_writing();
  const Status reason = handler_.wait_closed();
  ASSERT_FALSE(reason);
  EXPECT_EQ(reason.error().code, Code::kConnectionLost);
}

// The handshake itself.
class HostileHello : public ::testing::Test {
 protected:
  // What the server end makes of `bytes`, and what it answers.
  Error server_error(const std::vector<std::uint8_t>& bytes) {
    testing::SocketEnds ends = testing::socket_ends();
    const auto link = *make_fd_link(std::move(ends.in[0]), std::move(ends.out[0]));
    Error error;
    std::thread answering([&] {
      auto made = stdio_server(std::move(ends.in[1]), std::move(ends.out[1]), {});
      EXPECT_FALSE(made);
      if (!made) error = made.error();
    });
    const base::Bytes piece(bytes);
    EXPECT_TRUE(link->write({&piece, 1}, {}));
    link->end_writing();
    FrameReader reader(*link, nullptr, false);
    const auto any = [](const wire::FrameHeader&) -> Status { return {}; };
    auto frame = reader.next(wire::kMaxHead, any, [] { return Wait{}; });
    if (frame && *frame && (*frame)->type == wire::MessageType::kRefuse) {
      EXPECT_TRUE(wire::decode((*frame)->head, answer_));
    }
    answering.join();
    return error;
  }
  wire::Refuse answer_;
};

TEST_F(HostileHello, AnotherMajorIsToldBothVersions) {
  wire::Hello hello;
  hello.major = 9;
  hello.minor = 4;
  const Error error = server_error(wire::frame_bytes(wire::make_frame(hello), 0, true));
  EXPECT_EQ(error.code, Code::kProtocol);
  EXPECT_EQ(error.context, "version 1.0 here, 9.4 there");
  EXPECT_EQ(answer_.code, 12u);
  EXPECT_EQ(answer_.text, "version 1.0 here, 9.4 there");
}

TEST_F(HostileHello, LargeHeadsAreNotTakenBeforeTheSession) {
  std::vector<std::uint8_t> bytes(wire::kFrameHeaderBytes);
  wire::encode_header({1, 0, 0, wire::kMaxHelloHead + 1, 0, 0}, bytes);
  EXPECT_EQ(server_error(bytes).code, Code::kProtocol);
}

TEST_F(HostileHello, OtherFramesAndNoiseAreRefused) {
  EXPECT_EQ(server_error(wire::frame_bytes(testing::control_frame(1), 0, true)).code,
            Code::kProtocol);
  const std::string noise = "GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n";
  EXPECT_EQ(server_error({noise.begin(), noise.end()}).code, Code::kProtocol);
}

TEST_F(HostileHello, NoHelloAtAllIsAConnectionLost) {
  EXPECT_EQ(server_error({}).code, Code::kConnectionLost);
}

}  // namespace
}  // namespace volferry::transport
