// SPDX-License-Identifier: Apache-2.0
// One session with a peer, seen from either side: after the volumes have been introduced, the
// sending or the receiving role to its end.
#pragma once

#include "engine/session/conversation.h"
#include "engine/session/monitor.h"
#include "engine/session/runtime.h"
#include "engine/session/volume.h"

namespace volferry::session {

// References outlive the call of the role.
struct RemoteSession {
  transport::Channel& channel;
  Conversation& conversation;
  Runtime& runtime;
  Tally& tally;
  Monitor& monitor;
  const wire::Start& start;
  const VolumeOptions& options;
  DirectChoice direct = DirectChoice::kAuto;
};

// Sends `source` until the receiver is done. The receiver's counters go into the tally where
// `count` is set (the client's summary tells what happened at the other end).
Status run_sender(const RemoteSession& session, Volume& source, bool count);
// Receives into `destination`.
Status run_receiver(const RemoteSession& session, Volume& destination, wire::RootKind source);

// Puts what the channel has carried into the tally, for progress.
void count_wire(Tally& tally, const transport::Channel& channel);

// This end's result for the peer.
wire::Finish finish_message(const Tally& tally);

}  // namespace volferry::session
