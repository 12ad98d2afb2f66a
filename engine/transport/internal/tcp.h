// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/unique_fd.h"
#include "engine/transport/internal/wait.h"

namespace volferry::transport {

// "HOST:PORT", with brackets around an IPv6 address.
std::string host_port(const std::string& host, std::uint16_t port);

// A connected non-blocking socket with TCP_NODELAY. Tries the name's addresses in order, each with
// its share of the time. kConnect naming host, port and the system's reason; kCancelled. Name
// resolution itself cannot be interrupted.
Result<base::UniqueFd> connect_tcp(const std::string& host, std::uint16_t port,
                                   const StopEvent& stop, const Wait& wait);

// A listening non-blocking socket; host empty: all addresses, IPv6 and IPv4. kConnect naming the
// address.
Result<base::UniqueFd> listen_tcp(const std::string& host, std::uint16_t port);
// "ADDR:PORT" of this end.
Result<std::string> local_address(int fd);
// The same of the other end; "unknown" where it is gone already.
std::string remote_address(int fd);
// TCP_NODELAY: frames are gathered before they are written, so waiting for more gains nothing.
// SO_SNDBUF stays unset, since setting it would end the kernel's own tuning.
void prepare_stream(int fd);

}  // namespace volferry::transport
