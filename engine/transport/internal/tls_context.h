// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/transport/connect.h"

namespace volferry::transport {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
struct FreeSslCtx {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using UniqueSsl = std::unique_ptr<SSL, FreeSsl>;
using UniqueSslCtx = std::unique_ptr<SSL_CTX, FreeSslCtx>;

// TLS 1.3 settings and keys of one end: external PSK with (EC)DHE, or certificates that both ends
// verify. No tickets, no resumption, no early data. Immutable, so any thread may make connections
// from it. Its keys are used in handshakes only, so a connection may outlive it after that.
class TlsContext {
 public:
  // kUsage where a certificate, key or CA file cannot be read or does not fit.
  static Result<std::unique_ptr<TlsContext>> client(const TlsCredentials& credentials);
  static Result<std::unique_ptr<TlsContext>> server(const ServerOptions& options);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // `host`: the name or address that the server's certificate must carry (ignored with a PSK).
  Result<UniqueSsl> new_client(const std::string& host) const;
  Result<UniqueSsl> new_server() const;
  bool psk() const { return !keys_.empty(); }

 private:
  TlsContext() = default;
  Status set_up(const SSL_METHOD* method);
  Status load_certificates(const std::string& cert, const std::string& key, const std::string& ca);
  UniqueSsl make_ssl() const;
  const PskEntry* find(const unsigned char* identity, std::size_t length) const;
  static int offer_psk(SSL* ssl, const EVP_MD* hash, const unsigned char** identity,
                       std::size_t* length, SSL_SESSION** session);
  static int find_psk(SSL* ssl, const unsigned char* identity, std::size_t length,
                      SSL_SESSION** session);

  UniqueSslCtx context_;
  std::vector<PskEntry> keys_;  // the client has at most one
};

}  // namespace volferry::transport
