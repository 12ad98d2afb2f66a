// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/transport/slow_door.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "engine/base/check.h"

namespace volferry::transport::testing {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

base::UniqueFd stream_socket() {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  VF_CHECK(static_cast<bool>(fd), "a socket");
  return fd;
}

// Until `from` ends; then `to` is told.
void pump(int from, int to, std::chrono::milliseconds delay) {
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    std::this_thread::sleep_for(delay);
    if (::send(to, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) break;
  }
  ::shutdown(to, SHUT_WR);
}

void hand_on(const base::UniqueFd& client, std::uint16_t port, std::chrono::milliseconds delay) {
  const base::UniqueFd server = stream_socket();
  const sockaddr_in address = loopback(port);
  const bool connected =
      ::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (!connected) return;
  std::thread back([&] { pump(server.get(), client.get(), delay); });
  pump(client.get(), server.get(), delay);
  back.join();
}

}  // namespace

SlowDoor::SlowDoor(std::uint16_t port, std::chrono::milliseconds first,
                   std::chrono::milliseconds later)
    : server_(port), first_(first), later_(later), listener_(stream_socket()) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  VF_CHECK(::bind(listener_.get(), raw, length) == 0 && ::listen(listener_.get(), 16) == 0 &&
               ::getsockname(listener_.get(), raw, &length) == 0,
           "a listener");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

SlowDoor::~SlowDoor() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  accepting_.join();
}

void SlowDoor::accept_all() {
  std::vector<std::thread> connections;
  for (;;) {
    base::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) break;
    const auto delay = connections.empty() ? first_ : later_;
    connections.emplace_back(
        [this, delay, client = std::move(client)] { hand_on(client, server_, delay); });
  }
  for (std::thread& connection : connections) connection.join();
}

}  // namespace volferry::transport::testing
