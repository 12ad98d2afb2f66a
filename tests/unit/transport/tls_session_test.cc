// SPDX-License-Identifier: Apache-2.0
// Sessions over TLS with one and several connections.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "tests/unit/transport/slow_door.h"
#include "tests/unit/transport/tls_support.h"

#include "engine/transport/internal/handshake.h"
#include "engine/transport/internal/tcp.h"
#include "engine/transport/internal/tls_link.h"

namespace volferry::transport {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::Collector;

constexpr auto kPatience = 30s;

class TlsSessionTest : public ::testing::Test {
 protected:
  void listen(ChannelOptions channel = {}) {
    ServerOptions options = testing::psk_server(key_);
    options.channel = std::move(channel);
    auto server = Server::create(options);
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }
  void open(const ChannelOptions& options = {}) {
    auto session = testing::open_session(*server_, testing::psk_credentials(key_), options);
    ASSERT_TRUE(session.client) << session.client.error().message();
    ASSERT_TRUE(session.server) << session.server.error().message();
    near_ = *std::move(session.client);
    far_ = *std::move(session.server);
    at_near_.credit_to(near_.get());
    at_far_.credit_to(far_.get());
    near_->start(at_near_);
    far_->start(at_far_);
  }
  void finish_both() {
    std::thread other([&] {
      const Status status = far_->finish(kPatience);
      EXPECT_TRUE(status) << status.error().message();
    });
    const Status status = near_->finish(kPatience);
    EXPECT_TRUE(status) << status.error().message();
    other.join();
    EXPECT_TRUE(at_near_.wait_closed());
    EXPECT_TRUE(at_far_.wait_closed());
  }
  ~TlsSessionTest() override {
    near_.reset();
    far_.reset();
  }

  const PskEntry key_ = testing::psk_entry("mover", 1);
  std::unique_ptr<Server> server_;
  Collector at_near_;
  Collector at_far_;
  std::unique_ptr<Channel> near_;
  std::unique_ptr<Channel> far_;
};

ChannelOptions with_streams(unsigned streams) {
  ChannelOptions options;
  options.streams = streams;
  return options;
}

TEST_F(TlsSessionTest, FullDuplexDataArrivesIntact) {
  listen();
  open();
  constexpr std::uint32_t kFrames = 100;
  const auto push = [](Channel& channel) {
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      ASSERT_TRUE(channel.send(testing::data_frame(i, i % 3 == 0 ? 1 << 20 : 777 * i)));
      ASSERT_TRUE(channel.send(testing::control_frame(i)));
    }
  };
  std::thread other([&] { push(*far_); });
  push(*near_);
  other.join();
  finish_both();
  for (Collector* end : {&at_near_, &at_far_}) {
    std::uint32_t next = 0;
    for (const wire::Frame& frame : end->take_frames()) {
      if (frame.type == wire::MessageType::kRangeData) {
        EXPECT_EQ(testing::data_number(frame), next++);
      }
    }
    EXPECT_EQ(next, kFrames);
  }
}

TEST_F(TlsSessionTest, OpeningArrivesFirst) {
  ChannelOptions options = with_streams(2);
  const wire::Frame opening = testing::control_frame(11);
  options.opening = &opening;
  listen(with_streams(2));
  open(options);
  ASSERT_TRUE(near_->send(testing::control_frame(12)));
  finish_both();
  const std::vector<wire::Frame> frames = at_far_.take_frames();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].head, opening.head);
  EXPECT_EQ(frames[1].head, testing::control_frame(12).head);
}

// Control frames go before others, but HelloAck before all.
TEST_F(TlsSessionTest, TheAnswerToAnOpeningFollowsHelloAck) {
  listen();
  const wire::Frame opening = testing::control_frame(11);
  ChannelOptions options;
  options.opening = &opening;
  constexpr unsigned kSessions = 50;
  std::thread serving([&] {
    for (unsigned i = 0; i < kSessions; ++i) {
      auto channel = server_->accept();
      if (!channel) return;
      (void)(*channel)->send(testing::control_frame(12));
      Collector ignored;
      ignored.credit_to(channel->get());
      (*channel)->start(ignored);
      (void)(*channel)->finish(kPatience);
      channel->reset();
    }
  });
  for (unsigned i = 0; i < kSessions; ++i) {
    const std::atomic<bool> cancel{false};
    auto client = connect_tls({"127.0.0.1", testing::port_of(*server_)},
                              testing::psk_credentials(key_), options, cancel);
    EXPECT_TRUE(client) << client.error().message();
    if (!client) continue;
    Collector answers;
    (*client)->start(answers);
    EXPECT_TRUE((*client)->finish(kPatience));
    EXPECT_EQ(answers.take_frames().size(), 1u);
    client->reset();
  }
  serving.join();
}

TEST_F(TlsSessionTest, ServerBoundsTheStreams) {
  listen(with_streams(2));
  open(with_streams(4));
  EXPECT_EQ(near_->stats().streams, 2u);
  EXPECT_EQ(far_->stats().streams, 2u);
  finish_both();
}

ChannelOptions with_busy_streams(unsigned busy_streams) {
  ChannelOptions options = with_streams(1);
  options.busy_streams = busy_streams;
  return options;
}

TEST_F(TlsSessionTest, ABusySessionGetsMoreStreams) {
  listen(with_streams(4));
  open(with_busy_streams(2));
  ASSERT_TRUE(near_->send(testing::data_frame(0, kBusyBytes / 8)));
  ASSERT_EQ(at_far_.wait_frames(1), 1u);
  EXPECT_EQ(near_->stats().streams, 1u);
  std::uint32_t frames = 1;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (near_->stats().streams < 2 && std::chrono::steady_clock::now() < end) {
    ASSERT_TRUE(near_->send(testing::data_frame(frames++, 1 << 20)));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(near_->stats().streams, 2u);
  finish_both();
  EXPECT_EQ(at_far_.take_frames().size(), frames);
}

// The peer counts a connection from the moment it asks to join: whenever the session ends, that
// connection must not look like a lost one.
TEST_F(TlsSessionTest, ASessionEndsCleanlyWhileAConnectionJoinsIt) {
  listen(with_streams(4));
  // Two steps make the connection, with the third it asks, the fourth is the answer.
  constexpr auto kStep = 100ms;
  for (const auto busy : {50ms, 150ms, 250ms, 310ms, 330ms}) {
    const testing::SlowDoor door(testing::port_of(*server_), 0ms, kStep);
    const std::atomic<bool> cancel{false};
    auto near = connect_tls({"127.0.0.1", door.port()}, testing::psk_credentials(key_),
                            with_busy_streams(3), cancel);
    ASSERT_TRUE(near) << near.error().message();
    auto far = server_->accept();
    ASSERT_TRUE(far) << far.error().message();
    Collector at_near;
    Collector at_far;
    at_far.credit_to(far->get());
    (*near)->start(at_near);
    (*far)->start(at_far);
    for (unsigned frame = 0; frame < 5; ++frame) {
      ASSERT_TRUE((*near)->send(testing::data_frame(frame, 1 << 20)));
    }
    ASSERT_EQ(at_far.wait_frames(5), 5u);
    std::this_thread::sleep_for(busy);
    std::thread other([&] {
      const Status status = (*far)->finish(kPatience);
      EXPECT_TRUE(status) << busy.count() << ": " << status.error().message();
      far->reset();
    });
    const Status status = (*near)->finish(kPatience);
    EXPECT_TRUE(status) << busy.count() << ": " << status.error().message();
    near->reset();
    other.join();
  }
}

TEST_F(TlsSessionTest, EqualHintsKeepTheirOrderAndAllStreamsCarry) {
  listen(with_streams(3));
  open(with_streams(3));
  ASSERT_EQ(far_->stats().streams, 3u);
  constexpr std::uint32_t kFrames = 600;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    ASSERT_TRUE(near_->send(testing::data_frame(i, i % 50 == 0 ? 1 << 20 : 3000), i % 5));
  }
  finish_both();
  std::map<std::uint32_t, std::uint32_t> last;
  const std::vector<wire::Frame> frames = at_far_.take_frames();
  EXPECT_EQ(frames.size(), kFrames);
  for (const wire::Frame& frame : frames) {
    const std::uint32_t number = testing::data_number(frame);
    const auto [entry, first] = last.try_emplace(number % 5, number);
    if (!first) {
      EXPECT_EQ(number, entry->second + 5);
      entry->second = number;
    }
  }
}

TEST_F(TlsSessionTest, UnhintedDataUsesAllStreams) {
  listen(with_streams(2));
  open(with_streams(2));
  at_far_.keep_frames(false);
  for (std::uint32_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(near_->send(testing::data_frame(i, 500'000)));
  }
  finish_both();
  EXPECT_EQ(at_far_.body_bytes(), 200u * 500'000);
}

TEST_F(TlsSessionTest, AbortReachesThePeerThroughTls) {
  listen();
  open();
  at_far_.keep_frames(false);
  std::thread pushing([&] {
    while (far_->send(testing::data_frame(1, 1 << 20))) {
    }
  });
  ASSERT_GE(at_near_.wait_frames(3), 3u);
  near_->abort({Code::kIdentity, 0, "volume of another name"});
  const Status seen = at_far_.wait_closed();
  pushing.join();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, Code::kIdentity);
  EXPECT_EQ(seen.error().context, "peer: volume of another name");
}

// The other connections must not seem lost before the reason is there.
TEST_F(TlsSessionTest, AbortReachesThePeerBeforeAConnectionEnds) {
  listen(with_streams(2));
  const testing::SlowDoor door(testing::port_of(*server_), 100ms, 0ms);
  const std::atomic<bool> cancel{false};
  auto near = connect_tls({"127.0.0.1", door.port()}, testing::psk_credentials(key_),
                          with_streams(2), cancel);
  ASSERT_TRUE(near) << near.error().message();
  auto far = server_->accept();
  ASSERT_TRUE(far) << far.error().message();
  ASSERT_EQ((*near)->stats().streams, 2u);
  Collector at_near;
  Collector at_far;
  (*near)->start(at_near);
  (*far)->start(at_far);
  (*far)->abort({Code::kIdentity, 0, "volume of another name"});
  const Status seen = at_near.wait_closed();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, Code::kIdentity) << seen.error().message();
  near->reset();
  far->reset();
}

TEST_F(TlsSessionTest, SecondConnectionLostEndsTheSession) {
  listen(with_streams(2));
  open(with_streams(2));
  near_.reset();
  const Status seen = at_far_.wait_closed();
  EXPECT_FALSE(seen);
}

TEST_F(TlsSessionTest, SessionsFollowEachOther) {
  listen();
  for (unsigned i = 0; i < 30; ++i) {
    Collector near;
    Collector far;
    auto session = testing::open_session(*server_, testing::psk_credentials(key_));
    ASSERT_TRUE(session.client) << session.client.error().message();
    ASSERT_TRUE(session.server);
    (*session.client)->start(near);
    (*session.server)->start(far);
    std::thread other([&] { EXPECT_TRUE((*session.server)->finish(kPatience)); });
    EXPECT_TRUE((*session.client)->finish(kPatience));
    other.join();
  }
}

TEST_F(TlsSessionTest, StatsCountTheCipher) {
  listen();
  open();
  ASSERT_TRUE(near_->send(testing::data_frame(1, 1 << 20)));
  ASSERT_EQ(at_far_.wait_frames(1), 1u);
  EXPECT_GT(near_->stats().wire_sent, 1u << 20);
  EXPECT_LT(near_->stats().wire_sent, (1u << 20) + (1u << 14));
  EXPECT_TRUE(near_->round_trip());
  finish_both();
  EXPECT_EQ(near_->stats().wire_sent, far_->stats().wire_received);
  EXPECT_EQ(far_->stats().wire_sent, near_->stats().wire_received);
}

// A client of the session's own key, but without its token, must not get into it.
TEST_F(TlsSessionTest, JoinNeedsTheToken) {
  listen(with_streams(4));
  open(with_streams(1));
  const auto context = TlsContext::client(testing::psk_credentials(key_));
  ASSERT_TRUE(context);
  const Wait wait{.deadline = Clock::now() + kPatience};
  StopEvent never;
  const auto dial = [&] {
    auto socket = connect_tcp("127.0.0.1", testing::port_of(*server_), never, wait);
    return *make_tls_link(*std::move(socket), *(*context)->new_client("127.0.0.1"), true, "server",
                          wait);
  };
  const auto first = dial();
  const auto ack = hello_first(*first, {}, wait);
  ASSERT_TRUE(ack);
  const JoinToken right = *first->join_token(ack->session_id);
  JoinToken wrong = right;
  wrong[31] ^= 1;
  wire::HelloAck other_session = *ack;
  other_session.session_id[0] ^= 1;
  const Status refused = hello_join(*dial(), *ack, wrong, 1, wait);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kAuth);
  EXPECT_FALSE(hello_join(*dial(), other_session, right, 1, wait));
  std::vector<std::unique_ptr<Link>> joined;
  for (std::uint32_t stream = 1; stream < 4; ++stream) {
    joined.push_back(dial());
    EXPECT_TRUE(hello_join(*joined.back(), *ack, right, stream, wait));
  }
  const Status beyond = hello_join(*dial(), *ack, right, 4, wait);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::kProtocol);
}

TEST(TlsLink, KeysAreRenewed) {
  const PskEntry key = testing::psk_entry("mover", 1);
  const auto client = TlsContext::client(testing::psk_credentials(key));
  const auto server = TlsContext::server(testing::psk_server(key));
  ASSERT_TRUE(client);
  ASSERT_TRUE(server);
  const base::UniqueFd listener = *listen_tcp("127.0.0.1", 0);
  const std::string address = *local_address(listener.get());
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  StopEvent never;
  constexpr std::size_t kTotal = 10 << 20;
  std::thread sending([&] {
    auto socket = connect_tcp("127.0.0.1", port, never, {});
    auto link =
        make_tls_link(*std::move(socket), *(*client)->new_client(""), true, "server", {}, 100'000);
    ASSERT_TRUE(link);
    const std::vector<std::uint8_t> block(65536, 7);
    for (std::size_t sent = 0; sent < kTotal; sent += block.size()) {
      const base::Bytes piece(block);
      ASSERT_TRUE((*link)->write({&piece, 1}, {}));
    }
    (*link)->end_writing();
    std::uint8_t byte = 0;
    EXPECT_EQ((*link)->read({&byte, 1}, {}).value_or(9), 0u);
  });
  ASSERT_TRUE(wait_for(listener.get(), POLLIN, never, {}));
  base::UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
  auto link = make_tls_link(std::move(accepted), *(*server)->new_server(), true, "client", {});
  ASSERT_TRUE(link);
  std::vector<std::uint8_t> buffer(100'000);
  std::size_t total = 0;
  for (;;) {
    const auto got = (*link)->read(buffer, {});
    ASSERT_TRUE(got) << got.error().message();
    if (*got == 0) break;
    ASSERT_TRUE(std::all_of(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*got),
                            [](std::uint8_t byte) { return byte == 7; }));
    total += *got;
  }
  EXPECT_EQ(total, kTotal);
  (*link)->end_writing();
  sending.join();
}

}  // namespace
}  // namespace volferry::transport
