// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/http_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "cli/escape.h"

namespace volferry::cli::mover {

namespace {

struct Bound {
  base::UniqueFd fd;
  std::uint16_t port = 0;
};

Result<std::uint16_t> bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return fail_sys("getsockname");
  // Both families have the port in the same place.
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof v4);
  return ntohs(v4.sin_port);
}

Result<Bound> listen_on(const addrinfo& address, bool both_families) {
  Bound bound;
  bound.fd =
      base::UniqueFd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!bound.fd) return fail_sys("socket");
  const int on = 1;
  const int v6_only = both_families ? 0 : 1;
  (void)::setsockopt(bound.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6)
    (void)::setsockopt(bound.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  if (::bind(bound.fd.get(), address.ai_addr, address.ai_addrlen) != 0) return fail_sys("bind");
  if (::listen(bound.fd.get(), 64) != 0) return fail_sys("listen");
  VF_ASSIGN(bound.port, bound_port(bound.fd.get()));
  return bound;
}

Result<Bound> listen_at(const ListenAddress& listen) {
  const std::string name = fmt::format(
      "listen on {}:{}", listen.host.empty() ? "*" : escape_bytes(listen.host), listen.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string service = std::to_string(listen.port);
  const int error = ::getaddrinfo(listen.host.empty() ? nullptr : listen.host.c_str(),
                                  service.c_str(), &hints, &list);
  if (error != 0)
    return fail_with(Code::kConnect, fmt::format("{}: {}", name, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, ::freeaddrinfo);
  // One IPv6 socket serves both families, so it is tried first.
  Error last{Code::kConnect, 0, name};
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
      if (each->ai_family != family) continue;
      auto bound = listen_on(*each, listen.host.empty());
      if (bound) return bound;
      last.os_errno = bound.error().os_errno;
    }
  }
  return std::unexpected(last);
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

std::string reply_text(const HttpReply& reply, bool with_body) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\n", reply.status,
                                 status_text(reply.status));
  if (reply.status == 405) text += "Allow: GET, HEAD\r\n";
  if (reply.status != 204)
    text +=
        fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", reply.type, reply.body.size());
  text += "\r\n";
  if (with_body && reply.status != 204) text += reply.body;
  return text;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const ListenAddress& listen,
                                                      Handler handler) {
  VF_ASSIGN(Bound bound, listen_at(listen));
  base::UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return fail_sys("eventfd");
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(bound.fd), std::move(stop), bound.port, std::move(handler)));
}

HttpServer::HttpServer(base::UniqueFd listener, base::UniqueFd stop, std::uint16_t port,
                       Handler handler)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      port_(port),
      handler_(std::move(handler)),
      thread_([this] { run(); }) {}

HttpServer::~HttpServer() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void HttpServer::run() {
  std::vector<pollfd> wanted;
  for (;;) {
    wanted = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Connection& each : connections_)
      wanted.push_back({each.fd.get(), static_cast<short>(each.answered ? POLLOUT : POLLIN), 0});
    // Woken in time to let go of who takes too long.
    const int patience = connections_.empty() ? -1 : 200;
    if (::poll(wanted.data(), wanted.size(), patience) < 0 && errno != EINTR) return;
    if (wanted[0].revents != 0) return;
    std::size_t index = 2;
    const Clock::time_point now = Clock::now();
    for (auto each = connections_.begin(); each != connections_.end(); ++index) {
      const bool ready = wanted[index].revents != 0;
      const bool over = (ready && !serve(*each)) || now >= each->deadline;
      each = over ? connections_.erase(each) : std::next(each);
    }
    if (wanted[1].revents != 0) accept_one();
  }
}

void HttpServer::accept_one() {
  base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    // Out of descriptors: not asked again at once.
    if (errno == EMFILE || errno == ENFILE)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return;
  }
  if (connections_.size() >= kMaxConnections) connections_.pop_front();
  connections_.push_back({std::move(fd), Clock::now() + kPatience, {}, {}, false});
}

bool HttpServer::serve(Connection& connection) const {
  while (!connection.answered) {
    char part[1024];
    const ssize_t count = ::recv(connection.fd.get(), part, sizeof part, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    connection.in.append(part, static_cast<std::size_t>(count));
    const std::size_t end = connection.in.find("\r\n\r\n");
    if (end == std::string::npos && connection.in.size() < kMaxRequest) continue;
    connection.answered = true;
    connection.out = answer(end == std::string::npos ? "" : connection.in);
  }
  while (!connection.out.empty()) {
    const ssize_t count =
        ::send(connection.fd.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.out.erase(0, static_cast<std::size_t>(count));
  }
  (void)::shutdown(connection.fd.get(), SHUT_WR);
  return false;
}

std::string HttpServer::answer(std::string_view request) const {
  // METHOD SP PATH SP HTTP/...
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first + 1);
  const bool whole = first != std::string_view::npos && second != std::string_view::npos &&
                     line.substr(second + 1).starts_with("HTTP/1.");
  if (!whole) return reply_text({.status = 400, .body = "bad request\n"}, true);
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  if (method != "GET" && method != "HEAD")
    return reply_text({.status = 405, .body = "GET only\n"}, true);
  return reply_text(handler_(path), method == "GET");
}

}  // namespace volferry::cli::mover
