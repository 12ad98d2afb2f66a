// SPDX-License-Identifier: Apache-2.0
// The little of HTTP/1.1 that probes and scrapers need: GET and HEAD of a few paths, one answer a
// connection. Written here because the system's civetweb is built without IPv6, and a pod may have
// no other address.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "cli/endpoint.h"

#include "engine/base/unique_fd.h"

namespace volferry::cli::mover {

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // Called on the server's thread with the path, without a query. Must be quick.
  using Handler = std::function<HttpReply(std::string_view path)>;

  static constexpr std::size_t kMaxRequest = 8192;
  // Open at once; the oldest gives way to a new one.
  static constexpr std::size_t kMaxConnections = 16;
  static constexpr std::chrono::seconds kPatience{2};  // with one connection, all in all

  // An empty host means all addresses, IPv4 only where this machine has no IPv6; otherwise it is a
  // numeric address. Errors: kConnect, naming the address.
  static Result<std::unique_ptr<HttpServer>> start(const ListenAddress& listen, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    base::UniqueFd fd;
    Clock::time_point deadline;
    std::string in;
    std::string out;  // not yet written; empty while the request is not whole
    bool answered = false;
  };

  HttpServer(base::UniqueFd listener, base::UniqueFd stop, std::uint16_t port, Handler handler);
  void run();
  void accept_one();
  // False once the connection is over.
  bool serve(Connection& connection) const;
  std::string answer(std::string_view request) const;

  const base::UniqueFd listener_;
  const base::UniqueFd stop_;  // eventfd(2)
  const std::uint16_t port_;
  const Handler handler_;
  std::list<Connection> connections_;  // the thread's; oldest first
  std::thread thread_;
};

}  // namespace volferry::cli::mover
