// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/unique_fd.h"
#include "engine/transport/internal/link.h"
#include "engine/transport/internal/tls_context.h"

namespace volferry::transport {

// Plain bytes sent under one key before it is renewed. AES-GCM's bound in TLS 1.3 is 2^24.5 records
// (RFC 8446 section 5.5), 360 GiB in full ones; small frames make small records, so this stays far
// below.
inline constexpr std::uint64_t kKeyUpdateBytes = 16ull << 30;

// Performs the TLS handshake over a connected non-blocking socket. `peer` names it in errors.
// kAuth, kProtocol and kTimeout as tls_error and Link say; kConnect where the peer closes or resets
// in the middle of it.
Result<std::unique_ptr<Link>> make_tls_link(base::UniqueFd socket, UniqueSsl ssl, bool psk,
                                            std::string peer, const Wait& wait,
                                            std::uint64_t key_update_bytes = kKeyUpdateBytes);

}  // namespace volferry::transport
