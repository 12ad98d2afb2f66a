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

Result<PeerTrust> judge(const RunParts& parts, const std::vector<std::uint8_t>& tuple) {
  VF_ASSIGN(const std::optional<Identity> peer, decode_identity(tuple));
  parts.peer.set(peer);
  // Without a tuple it is a person's `volferry sync`.
  PeerTrust trust = PeerTrust::kTimes;
  if (peer) {
    VF_ASSIGN(trust, check_identities(parts.settings.role, parts.identity, *peer));
  }
  if (trust == PeerTrust::kContentOnly)
    parts.logger.log(base::LogLevel::kInfo,
                     "not the transfer that follows the last one here: all content is compared");
  parts.peer.count_session();
  return trust;
}

}  // namespace

PeerCheck peer_check(const RunParts& parts) {
  return [&parts](const std::vector<std::uint8_t>& tuple) -> Result<PeerTrust> {
    parts.live.begin_session();
    parts.peer.set(std::nullopt);
    Result<PeerTrust> judged = judge(parts, tuple);
    if (judged) {
      parts.live.accept();
    } else {
      parts.live.refuse(judged.error());
    }
    return judged;
  };
}

}  // namespace volferry::cli::mover
