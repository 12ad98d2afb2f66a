// SPDX-License-Identifier: Apache-2.0
// OpenSSL's errors as ours.
#pragma once

#include <openssl/ssl.h>

#include "engine/base/error.h"

namespace volferry::transport {

// The error of an SSL call that failed for good (SSL_ERROR_SSL), from the thread's error queue,
// which is emptied. kAuth where either side refused the other's key or certificate, with a text
// that says which; kProtocol where the other side does not speak TLS 1.3; else kConnectionLost.
// `what`: operation and peer.
Error tls_error(const SSL* ssl, const std::string& what, bool psk);
// A failed set-up call of the library, kInternal.
std::unexpected<Error> tls_setup_error(const std::string& what);

}  // namespace volferry::transport
