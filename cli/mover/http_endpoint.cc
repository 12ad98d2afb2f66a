// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/http_endpoint.h"

#include <civetweb.h>
#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "cli/escape.h"
#include "cli/mover/metrics.h"

namespace volferry::cli::mover {

namespace {

struct StopServer {
  void operator()(mg_context* context) const { ::mg_stop(context); }
};
using Server = std::unique_ptr<mg_context, StopServer>;

// One answer. What the scraper does not take is its own loss.
int answer(mg_connection* connection, int status, const char* text, std::string_view type,
           std::string_view body) {
  std::string reply = fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\n", status, text);
  if (status != 204)
    reply += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", type, body.size());
  reply += "\r\n";
  const bool head = std::string_view(::mg_get_request_info(connection)->request_method) == "HEAD";
  if (!head) reply += body;
  (void)::mg_write(connection, reply.data(), reply.size());
  return status;
}

bool is_read(mg_connection* connection) {
  const std::string_view method = ::mg_get_request_info(connection)->request_method;
  return method == "GET" || method == "HEAD";
}

constexpr std::string_view kPlain = "text/plain; charset=utf-8";

}  // namespace

struct HttpEndpoint::Impl {
  Role role;
  const LiveState& state;
  Server server;

  int metrics(mg_connection* connection) const {
    return answer(connection, 200, "OK", "text/plain; version=0.0.4; charset=utf-8",
                  metrics_text(role, state.totals(), state.healthy()));
  }
  int health(mg_connection* connection) const {
    if (state.healthy()) return answer(connection, 200, "OK", kPlain, "ok\n");
    return answer(connection, 503, "Service Unavailable", kPlain, "stuck\n");
  }
  int progress(mg_connection* connection) const {
    const auto now = state.progress();
    if (!now) return answer(connection, 204, "No Content", kPlain, "");
    return answer(connection, 200, "OK", "application/json", *now + "\n");
  }

  static int serve(mg_connection* connection, void* self) {
    const auto* impl = static_cast<const Impl*>(self);
    const char* uri = ::mg_get_request_info(connection)->local_uri;
    const std::string_view path = uri == nullptr ? "" : uri;
    if (!is_read(connection))
      return answer(connection, 405, "Method Not Allowed", kPlain, "GET only\n");
    if (path == "/metrics") return impl->metrics(connection);
    if (path == "/healthz") return impl->health(connection);
    if (path == "/progress") return impl->progress(connection);
    return answer(connection, 404, "Not Found", kPlain, "not found\n");
  }

  bool listen(const std::string& ports) {
    // Two slow readers at once must not keep a third from its answer for long.
    const char* options[] = {"listening_ports",    ports.c_str(), "num_threads", "3",
                             "request_timeout_ms", "2000",        nullptr};
    mg_callbacks callbacks{};
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
    server.reset(::mg_start(&callbacks, this, options));
    if (server == nullptr) return false;
    ::mg_set_request_handler(server.get(), "**", serve, this);
    return true;
  }
};

HttpEndpoint::HttpEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpEndpoint::~HttpEndpoint() = default;

Result<std::unique_ptr<HttpEndpoint>> HttpEndpoint::start(const ListenAddress& listen, Role role,
                                                          const LiveState& state) {
  auto impl = std::make_unique<Impl>(Impl{role, state, nullptr});
  std::vector<std::string> tries;
  if (listen.host.empty()) {
    tries = {fmt::format("+{}", listen.port), fmt::format("{}", listen.port)};
  } else if (listen.host.find(':') != std::string::npos) {
    tries = {fmt::format("[{}]:{}", listen.host, listen.port)};
  } else {
    tries = {fmt::format("{}:{}", listen.host, listen.port)};
  }
  for (const std::string& ports : tries) {
    // The list of ports is civetweb's own syntax, with options after a comma.
    if (ports.find_first_of(", rs") != std::string::npos) break;
    if (impl->listen(ports))
      return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(impl)));
  }
  return fail_with(Code::kConnect,
                   fmt::format("cannot serve metrics on {}:{}",
                               listen.host.empty() ? "*" : escape_bytes(listen.host), listen.port));
}

std::uint16_t HttpEndpoint::port() const {
  mg_server_port found[4] = {};
  const int count = ::mg_get_server_ports(impl_->server.get(), 4, found);
  return count > 0 ? static_cast<std::uint16_t>(found[0].port) : 0;
}

}  // namespace volferry::cli::mover
