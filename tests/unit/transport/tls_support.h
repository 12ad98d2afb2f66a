// SPDX-License-Identifier: Apache-2.0
// Certificates made on the fly, and TLS sessions over loopback.
#pragma once

#include <memory>
#include <string>

#include "tests/unit/transport/support.h"

#include "engine/transport/connect.h"

namespace volferry::transport::testing {

// A CA with one server certificate (for `san`, "DNS:localhost" say) and one client certificate, as
// PEM files in `dir` named PREFIX-ca.pem, PREFIX-server.pem, PREFIX-server.key, PREFIX-client.pem,
// PREFIX-client.key.
void make_certificates(const TempDir& dir, const std::string& prefix, const std::string& san);

PskEntry psk_entry(const std::string& identity, std::uint8_t fill);
TlsCredentials psk_credentials(const PskEntry& entry);
ServerOptions psk_server(const PskEntry& entry);

std::uint16_t port_of(const Server& server);

// Both ends of one session between a new client and `server`.
struct TlsSession {
  Result<std::unique_ptr<Channel>> client;
  Result<std::unique_ptr<Channel>> server;
};
// Where the client fails, the server end holds no channel.
TlsSession open_session(Server& server, const TlsCredentials& credentials,
                        const ChannelOptions& options = {}, const std::string& host = "127.0.0.1");

}  // namespace volferry::transport::testing
