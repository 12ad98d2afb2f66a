// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "cli/mover/http_endpoint.h"

namespace volferry::cli::mover {
namespace {

base::UniqueFd connected(std::uint16_t port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval patience = {20, 0};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

void put(const base::UniqueFd& fd, std::string_view text) {
  (void)::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

// Everything until the end.
std::string rest(const base::UniqueFd& fd) {
  std::string text;
  char part[4096];
  for (ssize_t count; (count = ::recv(fd.get(), part, sizeof part, 0)) > 0;)
    text.append(part, static_cast<std::size_t>(count));
  return text;
}

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    auto started =
        HttpServer::start({.host = "127.0.0.1", .port = 0}, [](std::string_view path) -> HttpReply {
          if (path == "/large") return {.body = std::string(4 << 20, 'x')};
          return {.status = path == "/none" ? 204 : 200, .body = std::string(path)};
        });
    EXPECT_TRUE(started) << started.error().message();
    if (started) server_ = *std::move(started);
  }
  std::string ask(std::string_view request) {
    const base::UniqueFd fd = connected(server_->port());
    put(fd, request);
    return rest(fd);
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersGetAndHead) {
  EXPECT_EQ(ask("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 2\r\n\r\n/a");
  EXPECT_TRUE(ask("HEAD /abc HTTP/1.0\r\n\r\n").ends_with("Content-Length: 4\r\n\r\n"));
  EXPECT_EQ(ask("GET /none HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(ask("POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  for (const char* bad : {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / SPDY\r\n\r\n"})
    EXPECT_TRUE(ask(bad).starts_with("HTTP/1.1 400 ")) << bad;
  EXPECT_TRUE(ask(std::string(HttpServer::kMaxRequest, 'x')).starts_with("HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, TakesARequestInPieces) {
  const base::UniqueFd fd = connected(server_->port());
  for (const char c : std::string_view("GET /piece HTTP/1.1\r\nA: b\r\n\r\n")) put(fd, {&c, 1});
  EXPECT_TRUE(rest(fd).ends_with("/piece"));
}

TEST_F(HttpServerTest, SendsMoreThanASocketHolds) {
  EXPECT_EQ(ask("GET /large HTTP/1.1\r\n\r\n").size() >> 20, 4u);
}

TEST_F(HttpServerTest, SilentClientsDoNotKeepOthersOut) {
  std::vector<base::UniqueFd> silent;
  for (std::size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i)
    silent.push_back(connected(server_->port()));
  EXPECT_TRUE(ask("GET /a HTTP/1.1\r\n\r\n").ends_with("/a"));
  // They are let go: the oldest at once, the others after a while.
  for (const base::UniqueFd& fd : silent) EXPECT_EQ(rest(fd), "");
}

TEST_F(HttpServerTest, TakenAddress) {
  const auto second = HttpServer::start({.host = "127.0.0.1", .port = server_->port()},
                                        [](std::string_view) { return HttpReply{}; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConnect);
  EXPECT_NE(second.error().message().find(std::to_string(server_->port())), std::string::npos);
  EXPECT_FALSE(HttpServer::start({.host = "no.name", .port = 0}, {}));
}

TEST(HttpServer, AllAddressesIncludeIpv4) {
  const auto server =
      HttpServer::start({.host = "", .port = 0}, [](std::string_view) { return HttpReply{}; });
  ASSERT_TRUE(server) << server.error().message();
  const base::UniqueFd fd = connected((*server)->port());
  put(fd, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(rest(fd).starts_with("HTTP/1.1 200 "));
}

TEST(Endpoint, HasThreePaths) {
  LiveState state([] { return TimePoint{}; });
  EXPECT_EQ(endpoint_reply("/healthz", Role::kSource, state).body, "ok\n");
  EXPECT_EQ(endpoint_reply("/progress", Role::kSource, state).status, 204);
  state.update({.files_total = 1});
  EXPECT_EQ(endpoint_reply("/progress", Role::kSource, state).type, "application/json");
  EXPECT_EQ(endpoint_reply("/metrics", Role::kSource, state).status, 200);
  EXPECT_EQ(endpoint_reply("/", Role::kSource, state).status, 404);
}

TEST(Endpoint, SaysWhereASessionIsStuck) {
  TimePoint now{};
  LiveState state([&] { return now; });
  state.begin_session();
  now += 2 * LiveState::kStuck;
  EXPECT_EQ(endpoint_reply("/healthz", Role::kSource, state).status, 503);
}

}  // namespace
}  // namespace volferry::cli::mover
