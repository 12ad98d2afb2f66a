// SPDX-License-Identifier: Apache-2.0
// /metrics, /healthz, /progress and /refusal over HTTP.
#pragma once

#include <memory>

#include "cli/mover/http_server.h"
#include "cli/mover/live_state.h"
#include "cli/mover/settings.h"

namespace volferry::cli::mover {

// What stands at a path.
HttpReply endpoint_reply(std::string_view path, Role role, const LiveState& state);

// `state` outlives the server. Errors: kConnect, naming the address.
Result<std::unique_ptr<HttpServer>> start_endpoint(const ListenAddress& listen, Role role,
                                                   const LiveState& state);

}  // namespace volferry::cli::mover
