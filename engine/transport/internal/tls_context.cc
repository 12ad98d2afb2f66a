// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/transport/internal/tls_error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace volferry::transport {

namespace {

// One recv(2) for up to this much: 16 records. Measured on loopback against the default of one
// record.
constexpr std::size_t kReadBuffer = 64 << 10;

bool cpu_has_aes() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0 && (c & bit_PCLMUL) != 0;
#elif defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

// Both hash with SHA-256, as an external PSK without a declared hash does.
const char* cipher_order() {
  return cpu_has_aes() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                       : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
}

// A session that stands for an external PSK. Null where the library refuses it.
SSL_SESSION* psk_session(SSL* ssl, const PskEntry& entry) {
  constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* session = SSL_SESSION_new();
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, entry.key.data(), entry.key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

std::unexpected<Error> file_error(const std::string& what, const std::string& path) {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return fail_with(Code::kUsage, what + " " + path + ": " + (reason != nullptr ? reason : "?"));
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

const PskEntry* TlsContext::find(const unsigned char* identity, std::size_t length) const {
  for (const PskEntry& entry : keys_) {
    if (entry.identity.size() == length &&
        std::memcmp(entry.identity.data(), identity, length) == 0) {
      return &entry;
    }
  }
  return nullptr;
}

int TlsContext::offer_psk(SSL* ssl, const EVP_MD* hash, const unsigned char** identity,
                          std::size_t* length, SSL_SESSION** session) {
  const auto* self = static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  *session = nullptr;
  if (hash != nullptr && !EVP_MD_is_a(hash, "SHA256")) return 1;  // no key for that hash
  const PskEntry& entry = self->keys_.front();
  *session = psk_session(ssl, entry);
  if (*session == nullptr) return 0;
  *identity = reinterpret_cast<const unsigned char*>(entry.identity.data());
  *length = entry.identity.size();
  return 1;
}

int TlsContext::find_psk(SSL* ssl, const unsigned char* identity, std::size_t length,
                         SSL_SESSION** session) {
  const auto* self = static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const PskEntry* entry = self->find(identity, length);
  *session = entry != nullptr ? psk_session(ssl, *entry) : nullptr;
  return entry == nullptr || *session != nullptr ? 1 : 0;
}

Status TlsContext::set_up(const SSL_METHOD* method) {
  ERR_clear_error();
  context_.reset(SSL_CTX_new(method));
  SSL_CTX* context = context_.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, cipher_order()) != 1 ||
      SSL_CTX_set1_groups_list(context, "X25519:P-256") != 1) {
    return tls_setup_error("TLS set-up");
  }
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBuffer);
  // With a PSK no certificate is acceptable, so that nobody gets by without the key.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

Status TlsContext::load_certificates(const std::string& cert, const std::string& key,
                                     const std::string& ca) {
  SSL_CTX* context = context_.get();
  if (SSL_CTX_use_certificate_chain_file(context, cert.c_str()) != 1) {
    return file_error("certificate", cert);
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return file_error("private key", key);
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return fail_with(Code::kUsage, "private key " + key + " does not belong to " + cert);
  }
  if (SSL_CTX_load_verify_file(context, ca.c_str()) != 1) return file_error("CA", ca);
  return {};
}

Result<std::unique_ptr<TlsContext>> TlsContext::client(const TlsCredentials& credentials) {
  std::unique_ptr<TlsContext> self(new TlsContext());
  VF_TRY(self->set_up(TLS_client_method()));
  if (credentials.use_psk()) {
    self->keys_.push_back({credentials.psk_identity, credentials.psk});
    SSL_CTX_set_psk_use_session_callback(self->context_.get(), &offer_psk);
    return self;
  }
  VF_TRY(self->load_certificates(credentials.cert_file, credentials.key_file, credentials.ca_file));
  return self;
}

Result<std::unique_ptr<TlsContext>> TlsContext::server(const ServerOptions& options) {
  std::unique_ptr<TlsContext> self(new TlsContext());
  VF_TRY(self->set_up(TLS_server_method()));
  if (!options.psk.empty()) {
    self->keys_ = options.psk;
    // Sessions are never resumed, but OpenSSL takes an external PSK for one and asks what context
    // it belongs to.
    constexpr unsigned char kSessionContext[] = "volferry";
    SSL_CTX_set_session_id_context(self->context_.get(), kSessionContext,
                                   sizeof kSessionContext - 1);
    SSL_CTX_set_psk_find_session_callback(self->context_.get(), &find_psk);
    return self;
  }
  VF_TRY(self->load_certificates(options.cert_file, options.key_file, options.ca_file));
  return self;
}

UniqueSsl TlsContext::make_ssl() const {
  UniqueSsl ssl(SSL_new(context_.get()));
  VF_CHECK(ssl != nullptr, "out of memory");
  return ssl;
}

Result<UniqueSsl> TlsContext::new_client(const std::string& host) const {
  UniqueSsl ssl = make_ssl();
  SSL_set_connect_state(ssl.get());
  if (psk()) return ssl;
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl.get());
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool address = is_address(host);
  const int set = address ? X509_VERIFY_PARAM_set1_ip_asc(verify, host.c_str())
                          : X509_VERIFY_PARAM_set1_host(verify, host.data(), host.size());
  if (set != 1) return tls_setup_error("host name " + host);
  if (!address) SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  return ssl;
}

Result<UniqueSsl> TlsContext::new_server() const {
  UniqueSsl ssl = make_ssl();
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace volferry::transport
