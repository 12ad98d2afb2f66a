// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/tcp.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace volferry::transport {

namespace {

constexpr int kBacklog = 128;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string service = std::to_string(port);
  const int error =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &list);
  if (error == 0) return Addresses(list);
  const std::string what = "resolve " + host_port(host, port);
  if (error == EAI_SYSTEM) return fail_with(Code::kConnect, what, errno);
  return fail_with(Code::kConnect, what + ": " + ::gai_strerror(error));
}

Result<base::UniqueFd> connect_one(const addrinfo& address, const StopEvent& stop,
                                   const Wait& wait) {
  base::UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_sys("socket");
  prepare_stream(fd.get());
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return fail_sys("connect");
  VF_TRY(wait_for(fd.get(), POLLOUT, stop, wait));
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return fail_sys("connect", error);
  return fd;
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    // An IPv4 peer of a socket for both reads better as what it is.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    } else {
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
    return host_port(text, ntohs(v6.sin6_port));
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof v4);
  ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return host_port(text, ntohs(v4.sin_port));
}

Result<base::UniqueFd> listen_one(const addrinfo& address, bool both_families) {
  base::UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_sys("socket");
  const int on = 1;
  const int off = 0;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, both_families ? &off : &on, sizeof on);
  }
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) return fail_sys("bind");
  if (::listen(fd.get(), kBacklog) != 0) return fail_sys("listen");
  return fd;
}

}  // namespace

std::string host_port(const std::string& host, std::uint16_t port) {
  const bool brackets = host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

void prepare_stream(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<base::UniqueFd> connect_tcp(const std::string& host, std::uint16_t port,
                                   const StopEvent& stop, const Wait& wait) {
  VF_ASSIGN(const Addresses list, resolve(host, port, AI_ADDRCONFIG));
  unsigned left = 0;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) ++left;
  Error last{Code::kConnect, 0, ""};
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next, --left) {
    Wait share = wait;
    const Clock::time_point now = Clock::now();
    if (wait.deadline != Clock::time_point::max()) {
      share.deadline = now + (wait.deadline - now) / left;
    }
    Result<base::UniqueFd> fd = connect_one(*each, stop, share);
    if (fd) return fd;
    last = std::move(fd).error();
    if (last.code == Code::kCancelled) return std::unexpected(std::move(last));
  }
  const std::string what = "connect to " + host_port(host, port);
  if (last.code == Code::kTimeout) return fail_with(Code::kConnect, what + ": timed out");
  return fail_with(Code::kConnect, what, last.os_errno);
}

Result<base::UniqueFd> listen_tcp(const std::string& host, std::uint16_t port) {
  VF_ASSIGN(const Addresses list, resolve(host, port, AI_PASSIVE));
  // For all addresses one IPv6 socket serves both families, so it is tried first.
  Error last{Code::kConnect, 0, ""};
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
      if (each->ai_family != family) continue;
      Result<base::UniqueFd> fd = listen_one(*each, host.empty());
      if (fd) return fd;
      last = std::move(fd).error();
    }
  }
  return fail_with(Code::kConnect, "listen on " + host_port(host.empty() ? "*" : host, port),
                   last.os_errno);
}

Result<std::string> local_address(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return fail_sys("getsockname");
  }
  return address_text(address);
}

std::string remote_address(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "unknown";
  return address_text(address);
}

}  // namespace volferry::transport
