// SPDX-License-Identifier: Apache-2.0
// Who is let in, who is not, and what both ends are told.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/unit/transport/tls_support.h"

#include "engine/transport/internal/handshake.h"
#include "engine/transport/internal/tcp.h"
#include "engine/transport/internal/tls_context.h"
#include "engine/transport/internal/tls_link.h"

namespace volferry::transport {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

const std::atomic<bool> kNoCancel{false};

class LineLogger : public base::Logger {
 public:
  void log(base::LogLevel /*level*/, std::string_view line) override {
    const std::lock_guard lock(mutex_);
    text_.append(line).append("\n");
    changed_.notify_all();
  }
  std::string wait_text() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !text_.empty(); });
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
};

std::unique_ptr<Server> make_server(ServerOptions options, base::Logger* logger = nullptr) {
  options.channel.logger = logger;
  auto server = Server::create(options);
  EXPECT_TRUE(server) << server.error().message();
  return *std::move(server);
}

TEST(TlsPsk, RightKeyGetsIn) {
  const PskEntry key = testing::psk_entry("mover", 1);
  const auto server = make_server(testing::psk_server(key));
  const auto session = testing::open_session(*server, testing::psk_credentials(key));
  ASSERT_TRUE(session.client) << session.client.error().message();
  ASSERT_TRUE(session.server);
}

TEST(TlsPsk, WrongKeyIsRefusedOnBothEnds) {
  LineLogger logger;
  const auto server = make_server(testing::psk_server(testing::psk_entry("mover", 1)), &logger);
  const auto session =
      testing::open_session(*server, testing::psk_credentials(testing::psk_entry("mover", 2)));
  ASSERT_FALSE(session.client);
  EXPECT_EQ(session.client.error().code, Code::kAuth) << session.client.error().message();
  EXPECT_THAT(session.client.error().message(), HasSubstr("the peer refused our key"));
  EXPECT_THAT(logger.wait_text(), HasSubstr("we refused the peer's key"));
}

TEST(TlsPsk, UnknownIdentityIsRefused) {
  LineLogger logger;
  const auto server = make_server(testing::psk_server(testing::psk_entry("mover", 1)), &logger);
  const auto session =
      testing::open_session(*server, testing::psk_credentials(testing::psk_entry("other", 1)));
  ASSERT_FALSE(session.client);
  EXPECT_EQ(session.client.error().code, Code::kAuth) << session.client.error().message();
  EXPECT_THAT(logger.wait_text(), HasSubstr("we refused the peer's key"));
}

// The errors that a server was told of by peers with the right key.
class Incompatible {
 public:
  std::unique_ptr<Server> server(const PskEntry& key) {
    ServerOptions options = testing::psk_server(key);
    options.incompatible = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      told_.push_back(error);
    };
    return make_server(options);
  }
  std::vector<Error> told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  std::mutex mutex_;
  std::vector<Error> told_;
};

TEST(TlsPsk, AnotherMajorVersionIsToldToTheServersOwner) {
  const PskEntry key = testing::psk_entry("mover", 1);
  Incompatible incompatible;
  auto server = incompatible.server(key);
  const StopEvent never;
  const auto context = TlsContext::client(testing::psk_credentials(key));
  ASSERT_TRUE(context);
  auto link =
      make_tls_link(*connect_tcp("127.0.0.1", testing::port_of(*server), never, {}),
                    *(*context)->new_client("127.0.0.1"), (*context)->psk(), "the server", {});
  ASSERT_TRUE(link);
  wire::Hello hello;
  hello.major = 9;
  ASSERT_TRUE(send_frame(**link, wire::make_frame(hello), {}));
  std::uint8_t answer = 0;
  EXPECT_TRUE((*link)->read({&answer, 1}, {}));  // the refusal
  link->reset();
  server.reset();
  ASSERT_EQ(incompatible.told().size(), 1u);
  EXPECT_EQ(incompatible.told()[0].code, Code::kProtocol);
  EXPECT_THAT(incompatible.told()[0].context, HasSubstr("version 1.0 here, 9.0 there"));
}

// Anybody can send noise to a port.
TEST(TlsPsk, WithoutTheKeyNobodyIsToldToTheServersOwner) {
  Incompatible incompatible;
  auto server = incompatible.server(testing::psk_entry("mover", 1));
  const auto session =
      testing::open_session(*server, testing::psk_credentials(testing::psk_entry("mover", 2)));
  EXPECT_FALSE(session.client);
  const StopEvent never;
  auto socket = connect_tcp("127.0.0.1", testing::port_of(*server), never, {});
  ASSERT_TRUE(socket);
  ASSERT_EQ(::write(socket->get(), "GET / HTTP/1.1\r\n\r\n", 18), 18);
  pollfd closed{.fd = socket->get(), .events = POLLRDHUP, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, 10'000), 1);
  server.reset();
  EXPECT_TRUE(incompatible.told().empty());
}

class TlsCertificates : public ::testing::Test {
 protected:
  TlsCertificates() {
    testing::make_certificates(dir_, "good", "DNS:localhost,IP:127.0.0.1");
    testing::make_certificates(dir_, "other", "DNS:elsewhere.example");
  }
  ServerOptions server_options(const std::string& own, const std::string& ca) const {
    ServerOptions options;
    options.listen_host = "127.0.0.1";
    options.port = 0;
    options.cert_file = dir_.file(own + "-server.pem");
    options.key_file = dir_.file(own + "-server.key");
    options.ca_file = dir_.file(ca + "-ca.pem");
    return options;
  }
  TlsCredentials credentials(const std::string& own, const std::string& ca) const {
    TlsCredentials credentials;
    credentials.cert_file = dir_.file(own + "-client.pem");
    credentials.key_file = dir_.file(own + "-client.key");
    credentials.ca_file = dir_.file(ca + "-ca.pem");
    return credentials;
  }
  TempDir dir_;
};

TEST_F(TlsCertificates, BothVerifiedGetIn) {
  const auto server = make_server(server_options("good", "good"));
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto session = testing::open_session(*server, credentials("good", "good"), {}, host);
    ASSERT_TRUE(session.client) << session.client.error().message();
  }
}

TEST_F(TlsCertificates, ClientRefusesAServerOfAnotherCa) {
  LineLogger logger;
  const auto server = make_server(server_options("other", "good"), &logger);
  const auto session = testing::open_session(*server, credentials("good", "good"));
  ASSERT_FALSE(session.client);
  EXPECT_EQ(session.client.error().code, Code::kAuth);
  EXPECT_THAT(session.client.error().message(), HasSubstr("we refused the peer's certificate"));
  EXPECT_THAT(logger.wait_text(), HasSubstr("the peer refused our certificate"));
}

TEST_F(TlsCertificates, ClientRefusesAnotherHostName) {
  const auto server = make_server(server_options("other", "good"));
  const auto session = testing::open_session(*server, credentials("good", "other"));
  ASSERT_FALSE(session.client);
  EXPECT_EQ(session.client.error().code, Code::kAuth);
  EXPECT_THAT(session.client.error().message(), HasSubstr("mismatch"));
}

TEST_F(TlsCertificates, ServerRefusesAClientOfAnotherCa) {
  LineLogger logger;
  const auto server = make_server(server_options("good", "good"), &logger);
  const auto session = testing::open_session(*server, credentials("other", "good"));
  ASSERT_FALSE(session.client);
  EXPECT_EQ(session.client.error().code, Code::kAuth) << session.client.error().message();
  EXPECT_THAT(session.client.error().message(), HasSubstr("the peer refused our certificate"));
  EXPECT_THAT(logger.wait_text(), HasSubstr("we refused the peer's certificate"));
}

TEST_F(TlsCertificates, KeyAndCertificateMeetingIsRefused) {
  const auto server = make_server(server_options("good", "good"));
  const auto session =
      testing::open_session(*server, testing::psk_credentials(testing::psk_entry("mover", 1)));
  ASSERT_FALSE(session.client);
  EXPECT_EQ(session.client.error().code, Code::kAuth) << session.client.error().message();
  const auto psk = make_server(testing::psk_server(testing::psk_entry("mover", 1)));
  const auto reverse = testing::open_session(*psk, credentials("good", "good"));
  ASSERT_FALSE(reverse.client);
  EXPECT_EQ(reverse.client.error().code, Code::kAuth) << reverse.client.error().message();
}

TEST_F(TlsCertificates, BadFilesAreUsageErrors) {
  ServerOptions missing = server_options("good", "good");
  missing.cert_file = dir_.file("none.pem");
  ServerOptions crossed = server_options("good", "good");
  crossed.key_file = dir_.file("other-server.key");
  for (const ServerOptions& options : {missing, crossed}) {
    const auto server = Server::create(options);
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code, Code::kUsage) << server.error().message();
  }
}

TEST(TlsConnect, RefusedConnectionNamesHostAndPort) {
  std::uint16_t port = 0;
  {
    const auto server = make_server(testing::psk_server(testing::psk_entry("a", 1)));
    port = testing::port_of(*server);
  }
  const auto channel = connect_tls(
      {"127.0.0.1", port}, testing::psk_credentials(testing::psk_entry("a", 1)), {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kConnect);
  EXPECT_THAT(channel.error().message(), HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(channel.error().message(), HasSubstr("Connection refused"));
}

// Accepts one connection and answers with `text`; then reads until the peer goes.
class PlainServer {
 public:
  explicit PlainServer(std::string text)
      : listener_(*listen_tcp("127.0.0.1", 0)), thread_([this, text = std::move(text)] {
          StopEvent never;
          (void)wait_for(listener_.get(), POLLIN, never, {});
          const base::UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
          (void)::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
          char buffer[1024];
          if (text.empty()) return;
          while (::recv(fd.get(), buffer, sizeof buffer, 0) > 0) {
          }
        }) {}
  ~PlainServer() { thread_.join(); }
  std::uint16_t port() const {
    const std::string address = *local_address(listener_.get());
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

 private:
  base::UniqueFd listener_;
  std::thread thread_;
};

TEST(TlsConnect, PortWithoutTlsIsAProtocolError) {
  const PlainServer plain("SSH-2.0-OpenSSH_9.2 hello\r\n");
  const auto channel =
      connect_tls({"127.0.0.1", plain.port()}, testing::psk_credentials(testing::psk_entry("a", 1)),
                  {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kProtocol);
  EXPECT_THAT(channel.error().message(), HasSubstr("does not speak TLS"));
}

TEST(TlsConnect, PortThatClosesIsAConnectError) {
  const PlainServer plain("");
  const auto channel =
      connect_tls({"127.0.0.1", plain.port()}, testing::psk_credentials(testing::psk_entry("a", 1)),
                  {}, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kConnect);
}

TEST(TlsConnect, SilentPortRunsIntoTheTimeout) {
  const base::UniqueFd listener = *listen_tcp("127.0.0.1", 0);
  const std::string address = *local_address(listener.get());
  ChannelOptions options;
  options.connect_timeout = std::chrono::milliseconds(50);
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto channel =
      connect_tls({"127.0.0.1", port}, testing::psk_credentials(testing::psk_entry("a", 1)),
                  options, kNoCancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kConnect);
}

TEST(TlsConnect, CancelEndsTheWait) {
  const base::UniqueFd listener = *listen_tcp("127.0.0.1", 0);
  const std::string address = *local_address(listener.get());
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const std::atomic<bool> cancel{true};
  const auto channel = connect_tls(
      {"127.0.0.1", port}, testing::psk_credentials(testing::psk_entry("a", 1)), {}, cancel);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kCancelled);
}

TEST(TlsServer, SilentClientsAreDroppedAndDoNotBlockOthers) {
  LineLogger logger;
  const PskEntry key = testing::psk_entry("mover", 1);
  ServerOptions options = testing::psk_server(key);
  options.handshake_timeout = std::chrono::milliseconds(100);
  const auto server = make_server(options, &logger);
  StopEvent never;
  const base::UniqueFd silent = *connect_tcp("127.0.0.1", testing::port_of(*server), never, {});
  const auto session = testing::open_session(*server, testing::psk_credentials(key));
  EXPECT_TRUE(session.client);
  EXPECT_THAT(logger.wait_text(), HasSubstr("timed out"));
}

TEST(TlsServer, MoreHandshakesThanAllowedAreClosedAtOnce) {
  ServerOptions options = testing::psk_server(testing::psk_entry("mover", 1));
  options.max_handshakes = 1;
  const auto server = make_server(options);
  StopEvent never;
  const base::UniqueFd first = *connect_tcp("127.0.0.1", testing::port_of(*server), never, {});
  const base::UniqueFd second = *connect_tcp("127.0.0.1", testing::port_of(*server), never, {});
  ASSERT_TRUE(wait_for(second.get(), POLLIN, never, {}));
  char byte = 0;
  EXPECT_EQ(::recv(second.get(), &byte, 1, 0), 0);
}

TEST(TlsServer, StopEndsAccept) {
  const auto server = make_server(testing::psk_server(testing::psk_entry("mover", 1)));
  std::thread stopping([&] { server->stop(); });
  const auto channel = server->accept();
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, Code::kCancelled);
  stopping.join();
}

}  // namespace
}  // namespace volferry::transport
