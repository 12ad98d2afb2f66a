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

void PeerRecord::count_session() {
  const std::lock_guard lock(mutex_);
  ++sessions_;
}

std::uint64_t PeerRecord::sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_;
}

namespace {

Status judge(const RunParts& parts, const std::vector<std::uint8_t>& tuple) {
  VF_ASSIGN(const std::optional<Identity> peer, decode_identity(tuple));
  parts.peer.set(peer);
  // Without a tuple it is a person's `volferry sync`.
  if (peer) VF_TRY(check_identities(parts.settings.role, parts.identity, *peer));
  parts.peer.count_session();
  return {};
}

}  // namespace

PeerCheck peer_check(const RunParts& parts) {
  return [&parts](const std::vector<std::uint8_t>& tuple) -> Status {
    parts.live.begin_session();
    parts.peer.set(std::nullopt);
    Status judged = judge(parts, tuple);
    if (judged) {
      parts.live.accept();
    } else {
      parts.live.refuse(judged.error());
    }
    return judged;
  };
}

}  // namespace volferry::cli::mover
