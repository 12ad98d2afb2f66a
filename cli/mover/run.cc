// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/run.h"

#include <utility>

#include "cli/mover/conflict.h"

namespace volferry::cli::mover {

void PeerRecord::set(std::optional<Identity> peer) {
  const std::lock_guard lock(mutex_);
  peer_ = std::move(peer);
}

std::optional<Identity> PeerRecord::get() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

PeerCheck peer_check(const RunParts& parts) {
  return [&parts](const std::vector<std::uint8_t>& tuple) -> Status {
    parts.live.begin_session();
    parts.peer.set(std::nullopt);
    VF_ASSIGN(const std::optional<Identity> peer, decode_identity(tuple));
    if (!peer) return {};  // a person's `volferry sync`
    parts.peer.set(peer);
    return check_identities(parts.settings.role, parts.identity, *peer);
  };
}

}  // namespace volferry::cli::mover
