// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/sync.h"

namespace volferry::cli {

inline constexpr std::uint16_t kDefaultPort = 8000;

// One end of a sync as written on the command line:
//   PATH                             local
//   [USER@]HOST:PATH                 ssh; PATH is relative to the remote home unless it starts with
//   '/' ssh://[USER@]HOST[:PORT]/PATH    ssh; PATH is absolute, `/~/PATH` relative to the remote
//   home tls://HOST[:PORT][/SUBPATH]      a `volferry serve`; SUBPATH lies below the server's root
// As with rsync a colon before the first slash means remote, so a local name with a colon is
// written `./a:b`. IPv6 addresses stand in brackets. Credentials and ssh commands of the result are
// left for the caller to fill in. Errors: kUsage, the text names the endpoint.
Result<Endpoint> parse_endpoint(std::string_view text);

// Where `serve` listens.
struct ListenAddress {
  std::string host;                   // empty: all addresses
  std::uint16_t port = kDefaultPort;  // 0: the kernel picks one
};
// `ADDR:PORT`, `ADDR`, `:PORT`; IPv6 in brackets. `[::]` and `*` mean all addresses.
Result<ListenAddress> parse_listen(std::string_view text);

bool is_remote(const Endpoint& endpoint);

}  // namespace volferry::cli
