// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/tls_error.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

namespace volferry::transport {

namespace {

std::string reason_text(unsigned long error) {
  const char* text = ERR_reason_error_string(error);
  return text != nullptr ? text : "TLS error " + std::to_string(ERR_GET_REASON(error));
}

// Alerts by which the peer refuses what we proved or did not prove.
bool refused_by_peer(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

// Our own checks of what the peer proved.
bool refused_by_us(int reason) {
  switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_DIGEST_CHECK_FAILED:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_NO_CERTIFICATE_SET:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_BAD_SIGNATURE:
    case SSL_R_BAD_PSK_IDENTITY:
    case SSL_R_PSK_IDENTITY_NOT_FOUND:
      return true;
    default:
      return false;
  }
}

bool not_tls13(int reason) {
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_SSLV3_ALERT_UNEXPECTED_MESSAGE:
      return true;
    default:
      return false;
  }
}

}  // namespace

Error tls_error(const SSL* ssl, const std::string& what, bool psk) {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  const int reason = ERR_GET_REASON(error);
  const std::string text = reason_text(error);
  const char* proof = psk ? "key" : "certificate";
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return {Code::kConnectionLost, 0, what + ": " + text};
  if (refused_by_peer(reason)) {
    return {Code::kAuth, 0, what + ": the peer refused our " + proof + " (" + text + ")"};
  }
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && !psk) {
    return {Code::kAuth, 0,
            what + ": we refused the peer's certificate (" +
                X509_verify_cert_error_string(SSL_get_verify_result(ssl)) + ")"};
  }
  if (refused_by_us(reason)) {
    return {Code::kAuth, 0, what + ": we refused the peer's " + proof + " (" + text + ")"};
  }
  if (not_tls13(reason)) {
    return {Code::kProtocol, 0, what + ": the peer does not speak TLS 1.3 (" + text + ")"};
  }
  return {Code::kConnectionLost, 0, what + ": " + text};
}

std::unexpected<Error> tls_setup_error(const std::string& what) {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return fail_with(Code::kInternal, what + ": " + reason_text(error));
}

}  // namespace volferry::transport
