// SPDX-License-Identifier: Apache-2.0
// Channels over socket pairs and pipes: order, flow control, ends.
#include "engine/transport/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/transport/support.h"

namespace volferry::transport {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::ChannelPair;
using testing::Collector;
using testing::control_frame;
using testing::data_frame;
using testing::data_number;
using testing::list_frame;

constexpr auto kPatience = 30s;

struct Session {
  ChannelPair pair;
  Collector client;
  Collector server;

  explicit Session(ChannelPair made) : pair(std::move(made)) {
    client.credit_to(pair.client.get());
    server.credit_to(pair.server.get());
    pair.client->start(client);
    pair.server->start(server);
  }
  ~Session() {
    pair.client.reset();
    pair.server.reset();
  }
  void finish_both() {
    Status server_status;
    std::thread other([&] { server_status = pair.server->finish(kPatience); });
    const Status client_status = pair.client->finish(kPatience);
    other.join();
    EXPECT_TRUE(client_status) << client_status.error().message();
    EXPECT_TRUE(server_status) << server_status.error().message();
  }
};

TEST(Channel, TellsAgentAndIdentity) {
  ChannelOptions client;
  client.agent = "left";
  client.identity = {1, 2, 3};
  ChannelOptions server;
  server.agent = "right";
  server.identity = {9};
  const ChannelPair pair = connect_ends(testing::socket_ends(), client, server);
  EXPECT_EQ(pair.server->peer_agent(), "left");
  EXPECT_EQ(pair.server->peer_identity(), client.identity);
  EXPECT_EQ(pair.client->peer_agent(), "right");
  EXPECT_EQ(pair.client->peer_identity(), server.identity);
}

TEST(Channel, ReceivesAfterItHasEndedSending) {
  Session session(testing::channel_pair());
  session.pair.server->end_sending();
  EXPECT_FALSE(session.pair.server->send(control_frame(1)));
  EXPECT_TRUE(session.client.wait_closed());
  ASSERT_TRUE(session.pair.client->send(control_frame(2)));
  ASSERT_TRUE(session.pair.client->send(data_frame(3, 100)));
  session.finish_both();
  EXPECT_TRUE(session.server.wait_closed());
  EXPECT_EQ(session.server.take_frames().size(), 2u);
}

TEST(Channel, CarriesEveryClassBothWays) {
  Session session(testing::channel_pair());
  for (Channel* channel : {session.pair.client.get(), session.pair.server.get()}) {
    ASSERT_TRUE(channel->send(control_frame(7)));
    ASSERT_TRUE(channel->send(list_frame(3)));
    ASSERT_TRUE(channel->send(data_frame(5, 1 << 20)));
    ASSERT_TRUE(channel->send(data_frame(6, 0)));
  }
  session.finish_both();
  for (Collector* end : {&session.client, &session.server}) {
    EXPECT_TRUE(end->wait_closed());
    unsigned seen = 0;
    for (const wire::Frame& frame : end->take_frames()) {
      if (frame.type == wire::MessageType::kRangeData) seen += data_number(frame) == 5 ? 1 : 10;
      if (frame.type == wire::MessageType::kDirList) seen += 100;
      if (frame.type == wire::MessageType::kDirRelease) seen += 1000;
    }
    EXPECT_EQ(seen, 1111u);
  }
}

TEST(Channel, WorksOverPipes) {
  Session session(connect_ends(testing::pipe_ends(), {}, {}));
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(session.pair.client->send(data_frame(i, 300'000)));
  }
  session.finish_both();
  EXPECT_TRUE(session.server.wait_closed());
  std::uint32_t next = 0;
  for (const wire::Frame& frame : session.server.take_frames()) {
    EXPECT_EQ(data_number(frame), next++);
  }
  EXPECT_EQ(next, 20u);
}

TEST(Channel, FramesFromBeforeStartAreKept) {
  ChannelPair pair = testing::channel_pair();
  ASSERT_TRUE(pair.client->send(control_frame(1)));
  ASSERT_TRUE(pair.client->send(control_frame(2)));
  Collector server;
  pair.server->start(server);
  EXPECT_EQ(server.wait_frames(2), 2u);
  pair.server.reset();
}

TEST(Channel, BodiesLandInThePool) {
  auto pool = base::BufferPool::create(4, wire::kMaxBody);
  ASSERT_TRUE(pool);
  ChannelOptions server;
  server.receive_pool = pool->get();
  server.data_credit = 3 << 20;
  Session session(connect_ends(testing::socket_ends(), {}, server));
  ASSERT_TRUE(session.pair.client->send(data_frame(1, 1 << 20)));
  ASSERT_TRUE(session.pair.client->send(data_frame(2, 1000)));
  ASSERT_EQ(session.server.wait_frames(2), 2u);
  const std::vector<wire::Frame> frames = session.server.take_frames();
  EXPECT_EQ(frames[0].body.pool(), pool->get());
  EXPECT_EQ(frames[1].body.pool(), nullptr);
  EXPECT_EQ(data_number(frames[0]), 1u);
}

// Both ends push far more than the windows and the socket's buffers hold, at the same time. Without
// credit, or with a writer that is not read, this stops for good.
TEST(Channel, FullDuplexWithTinyWindowsDoesNotStall) {
  ChannelOptions tiny;
  tiny.data_credit = 100'000;
  tiny.list_credit = 1000;
  Session session(testing::channel_pair(tiny));
  session.client.keep_frames(false);
  session.server.keep_frames(false);
  constexpr unsigned kFrames = 300;
  const auto push = [](Channel& channel) {
    for (unsigned i = 0; i < kFrames; ++i) {
      if (!channel.send(data_frame(i, i % 7 == 0 ? 1 << 20 : 20'000))) return;
      if (!channel.send(list_frame(i))) return;
      if (!channel.send(control_frame(i))) return;
    }
  };
  std::thread left([&] { push(*session.pair.client); });
  std::thread right([&] { push(*session.pair.server); });
  left.join();
  right.join();
  session.finish_both();
  EXPECT_EQ(session.client.wait_frames(3 * kFrames), 3 * kFrames);
  EXPECT_EQ(session.server.wait_frames(3 * kFrames), 3 * kFrames);
}

TEST(Channel, DataWaitsForCreditAndControlDoesNot) {
  ChannelOptions server;
  server.data_credit = 200'000;
  ChannelPair pair = connect_ends(testing::socket_ends(), {}, server);
  Collector client;
  Collector hoarder;  // never gives credit back
  pair.client->start(client);
  pair.server->start(hoarder);
  std::atomic<unsigned> sent{0};
  std::thread pusher([&] {
    while (pair.client->send(data_frame(sent, 90'000))) ++sent;
  });
  EXPECT_EQ(hoarder.wait_frames(2), 2u);
  // The third frame has no credit, yet control frames pass.
  ASSERT_TRUE(pair.client->send(control_frame(1)));
  EXPECT_EQ(hoarder.wait_frames(3), 3u);
  EXPECT_EQ(sent, 2u);
  const std::vector<wire::Frame> frames = hoarder.take_frames();
  EXPECT_EQ(frames.back().type, wire::MessageType::kDirRelease);
  // Credit releases the third.
  for (const wire::Frame& frame : frames) {
    pair.server->consumed(wire::frame_class(frame.type), frame.charge());
  }
  EXPECT_EQ(hoarder.wait_frames(5), 5u);
  pair.client->abort({Code::kCancelled, 0, "enough"});
  pusher.join();
  pair.client.reset();
  pair.server.reset();
}

TEST(Channel, AbortTellsThePeerCodeAndText) {
  Session session(testing::channel_pair());
  session.pair.client->abort({Code::kDestinationFull, 28, "write big.img"});
  const Status seen = session.server.wait_closed();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, Code::kDestinationFull);
  EXPECT_EQ(seen.error().context, "peer: write big.img: No space left on device");
  const Status own = session.client.wait_closed();
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().code, Code::kDestinationFull);
  const Status later = session.pair.client->send(control_frame(1));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().context, "write big.img");
}

TEST(Channel, AbortReleasesABlockedSender) {
  ChannelOptions server;
  server.data_credit = 1000;
  ChannelPair pair = connect_ends(testing::socket_ends(), {}, server);
  Collector client;
  Collector hoarder;
  pair.client->start(client);
  pair.server->start(hoarder);
  Status last;
  std::thread pusher([&] {
    while ((last = pair.client->send(data_frame(1, 500'000)))) {
    }
  });
  hoarder.wait_frames(1);
  pair.client->abort({Code::kInterrupted, 0, "stopped"});
  pusher.join();
  EXPECT_EQ(last.error().code, Code::kInterrupted);
  const Status seen = hoarder.wait_closed();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, Code::kInterrupted);
  pair.client.reset();
  pair.server.reset();
}

// The peer never reads: the refusal cannot be delivered, and the abort must end all the same.
TEST(Channel, AbortEndsAlthoughThePeerDoesNotRead) {
  ChannelPair pair = testing::channel_pair();
  Collector client;
  pair.client->start(client);
  for (unsigned i = 0; i < 40; ++i) {
    ASSERT_TRUE(pair.client->send(data_frame(i, 100'000)));
  }
  pair.client->abort({Code::kInterrupted, 0, "stopped"});
  EXPECT_FALSE(client.wait_closed());
  pair.client.reset();
}

TEST(Channel, PeerThatVanishesIsAConnectionLost) {
  ChannelOptions options;
  testing::SocketEnds ends = testing::socket_ends();
  const int raw = ::dup(ends.in[1].get());
  ChannelPair pair = connect_ends(std::move(ends), options, options);
  Collector client;
  pair.client->start(client);
  ::shutdown(raw, SHUT_RDWR);
  ::close(raw);
  const Status reason = client.wait_closed();
  ASSERT_FALSE(reason);
  EXPECT_EQ(reason.error().code, Code::kConnectionLost);
  const Status later = pair.client->send(control_frame(1));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Code::kConnectionLost);
  pair.client.reset();
}

TEST(Channel, SilentPeerTimesOut) {
  ChannelOptions client_options;
  client_options.idle_timeout = 50ms;
  // The server's reader and writer run, but its pings come every 5 s only.
  Session session(connect_ends(testing::socket_ends(), client_options, {}));
  const Status reason = session.client.wait_closed();
  ASSERT_FALSE(reason);
  EXPECT_EQ(reason.error().code, Code::kConnectionLost);
}

TEST(Channel, PingsKeepAnIdleConnection) {
  ChannelOptions options;
  options.idle_timeout = 600ms;
  Session session(testing::channel_pair(options));
  const std::uint64_t before = session.pair.client->stats().wire_received;
  // Each ping is 16 bytes; eight of them take longer than the timeout.
  while (session.pair.client->stats().wire_received < before + 8 * wire::kFrameHeaderBytes) {
    ASSERT_FALSE(session.client.closed());
    std::this_thread::yield();
  }
  session.finish_both();
}

TEST(Channel, SendAfterFinishFails) {
  Session session(testing::channel_pair());
  session.finish_both();
  EXPECT_FALSE(session.pair.client->send(control_frame(1)));
}

TEST(Channel, FinishGivesUpOnAPeerThatDoesNotClose) {
  Session session(testing::channel_pair());
  const Status status = session.pair.client->finish(50ms);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kConnectionLost);
}

TEST(Channel, OversizedFramesAreNotSent) {
  Session session(testing::channel_pair());
  EXPECT_FALSE(session.pair.client->send(data_frame(1, wire::kMaxBody + 1)));
  wire::Frame with_body = control_frame(1);
  with_body.body = base::Buffer::copy_of(with_body.head);
  EXPECT_FALSE(session.pair.client->send(std::move(with_body)));
  wire::Frame huge = control_frame(1);
  huge.head.resize(wire::kMaxHead + 1);
  EXPECT_FALSE(session.pair.client->send(std::move(huge)));
}

TEST(Channel, BandwidthLimitStillDeliversAll) {
  ChannelOptions client;
  client.bandwidth_limit = 8 << 20;
  Session session(connect_ends(testing::socket_ends(), client, {}));
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(session.pair.client->send(data_frame(i, 300'000)));
  }
  session.finish_both();
  EXPECT_EQ(session.server.body_bytes(), 4u * 300'000);
}

TEST(Channel, ManySmallSessions) {
  for (unsigned i = 0; i < 1000; ++i) {
    Session session(testing::channel_pair());
    ASSERT_TRUE(session.pair.client->send(control_frame(i)));
    session.finish_both();
    EXPECT_EQ(session.server.wait_frames(1), 1u);
  }
}

}  // namespace
}  // namespace volferry::transport
