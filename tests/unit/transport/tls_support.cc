// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/transport/tls_support.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdio>

#include "engine/base/check.h"

namespace volferry::transport::testing {

namespace {

struct Identity {
  EVP_PKEY* key = nullptr;
  X509* cert = nullptr;
  Identity() = default;
  Identity(Identity&& other) noexcept : key(other.key), cert(other.cert) {
    other.key = nullptr;
    other.cert = nullptr;
  }
  Identity& operator=(Identity&&) = delete;
  ~Identity() {
    EVP_PKEY_free(key);
    X509_free(cert);
  }
};

void add_extension(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  VF_CHECK(extension != nullptr, "X509 extension");
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

Identity make_identity(const std::string& name, const Identity* issuer, const std::string& san) {
  static std::atomic<long> serial{1};
  Identity made;
  made.key = EVP_EC_gen("P-256");
  made.cert = X509_new();
  VF_CHECK(made.key != nullptr && made.cert != nullptr, "test certificate");
  X509_set_version(made.cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.cert), serial++);
  X509_gmtime_adj(X509_getm_notBefore(made.cert), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.cert), 86400);
  X509_set_pubkey(made.cert, made.key);
  X509_NAME* subject = X509_get_subject_name(made.cert);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  const Identity& parent = issuer != nullptr ? *issuer : made;
  X509_set_issuer_name(made.cert, X509_get_subject_name(parent.cert));
  add_extension(made.cert, parent.cert, NID_basic_constraints,
                issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  add_extension(made.cert, parent.cert, NID_subject_key_identifier, "hash");
  if (!san.empty()) add_extension(made.cert, parent.cert, NID_subject_alt_name, san);
  X509_sign(made.cert, parent.key, EVP_sha256());
  return made;
}

void write_cert(const std::string& path, X509* cert) {
  FILE* file = std::fopen(path.c_str(), "w");
  VF_CHECK(file != nullptr && PEM_write_X509(file, cert) == 1, "write certificate");
  std::fclose(file);
}

void write_key(const std::string& path, EVP_PKEY* key) {
  FILE* file = std::fopen(path.c_str(), "w");
  VF_CHECK(file != nullptr &&
               PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
           "write key");
  std::fclose(file);
}

}  // namespace

void make_certificates(const TempDir& dir, const std::string& prefix, const std::string& san) {
  const Identity ca = make_identity(prefix + " CA", nullptr, "");
  write_cert(dir.file(prefix + "-ca.pem"), ca.cert);
  for (const std::string role : {"server", "client"}) {
    const Identity end = make_identity(role, &ca, role == "server" ? san : "");
    write_cert(dir.file(prefix + "-" + role + ".pem"), end.cert);
    write_key(dir.file(prefix + "-" + role + ".key"), end.key);
  }
}

PskEntry psk_entry(const std::string& identity, std::uint8_t fill) {
  return {identity, std::vector<std::uint8_t>(32, fill)};
}

TlsCredentials psk_credentials(const PskEntry& entry) {
  TlsCredentials credentials;
  credentials.psk_identity = entry.identity;
  credentials.psk = entry.key;
  return credentials;
}

ServerOptions psk_server(const PskEntry& entry) {
  ServerOptions options;
  options.listen_host = "127.0.0.1";
  options.port = 0;
  options.psk = {entry};
  return options;
}

std::uint16_t port_of(const Server& server) {
  const std::string address = server.address();
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

TlsSession open_session(Server& server, const TlsCredentials& credentials,
                        const ChannelOptions& options, const std::string& host) {
  const std::atomic<bool> cancel{false};
  TlsSession session{connect_tls({host, port_of(server)}, credentials, options, cancel),
                     fail_with(Code::kInternal, "the client failed")};
  if (session.client) session.server = server.accept();
  return session;
}

}  // namespace volferry::transport::testing
