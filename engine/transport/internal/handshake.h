// SPDX-License-Identifier: Apache-2.0
// The Hello exchange on a fresh connection, before there is a channel.
#pragma once

#include "engine/transport/channel.h"
#include "engine/transport/internal/channel_impl.h"
#include "engine/transport/internal/link.h"
#include "engine/transport/wire/messages.h"

namespace volferry::transport {

// Client, first connection: sends Hello and returns the answer. The peer's refusal is returned as
// its error.
Result<wire::HelloAck> hello_first(Link& link, const ChannelOptions& options, const Wait& wait);
// Client, connection number `stream` of the session in `first`.
Status hello_join(Link& link, const wire::HelloAck& first, const JoinToken& token,
                  std::uint32_t stream, const Wait& wait);

// Server: receives Hello. What is wrong with it the peer is told.
Result<wire::Hello> receive_hello(Link& link, const Wait& wait);
wire::HelloAck make_ack(const ChannelOptions& options, const SessionId& session);
Status send_frame(Link& link, const wire::Frame& frame, const Wait& wait);
// Best effort: ends a connection that has joined a session and is not needed.
void say_goodbye(Link& link, const Wait& wait);
// Best effort; the error itself, for returning.
std::unexpected<Error> refuse(Link& link, const Error& error, const Wait& wait);

PeerInfo peer_info(const wire::Hello& hello);
PeerInfo peer_info(const wire::HelloAck& ack);

}  // namespace volferry::transport
