// SPDX-License-Identifier: Apache-2.0
// /metrics, /healthz and /progress over HTTP.
#pragma once

#include <memory>
#include <string>

#include "cli/endpoint.h"
#include "cli/mover/live_state.h"
#include "cli/mover/settings.h"

namespace volferry::cli::mover {

// Serves from construction to destruction, on threads of its own.
class HttpEndpoint {
 public:
  // `state` outlives the endpoint. An empty host means all addresses, IPv4 only where this machine
  // has no IPv6. Errors: kConnect, naming the address.
  static Result<std::unique_ptr<HttpEndpoint>> start(const ListenAddress& listen, Role role,
                                                     const LiveState& state);
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // The port as bound.
  std::uint16_t port() const;

 private:
  struct Impl;
  explicit HttpEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace volferry::cli::mover
