// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/http_endpoint.h"

#include "cli/mover/metrics.h"
#include "cli/mover/result.h"

namespace volferry::cli::mover {

HttpReply endpoint_reply(std::string_view path, Role role, const LiveState& state) {
  if (path == "/metrics") {
    return {.type = "text/plain; version=0.0.4; charset=utf-8",
            .body = metrics_text(role, state.totals(), state.healthy())};
  }
  if (path == "/healthz") {
    if (state.healthy()) return {.body = "ok\n"};
    return {.status = 503, .body = "stuck\n"};
  }
  if (path == "/progress") {
    const auto now = state.progress();
    if (!now) return {.status = 204};
    return {.type = "application/json", .body = *now + "\n"};
  }
  if (path == "/refusal") {
    const auto last = state.refusal();
    if (!last) return {.status = 204};
    return {.type = "application/json", .body = refusal_json(*last) + "\n"};
  }
  return {.status = 404, .body = "not found\n"};
}

Result<std::unique_ptr<HttpServer>> start_endpoint(const ListenAddress& listen, Role role,
                                                   const LiveState& state) {
  return HttpServer::start(
      listen, [role, &state](std::string_view path) { return endpoint_reply(path, role, state); });
}

}  // namespace volferry::cli::mover
