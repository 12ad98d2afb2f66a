// SPDX-License-Identifier: Apache-2.0
// Whether a transfer between two volumes may begin, judged by their identity tuples alone. Both
// ends judge the same two tuples and so come to the same conclusion, with the same token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/mover/identity.h"
#include "cli/mover/settings.h"

namespace volferry::cli::mover {

enum class ConflictKind : std::uint8_t {
  kVolumeMode,    // files and devices do not go together; cannot be acknowledged
  kPeerIdentity,  // another replication, another volume, or peers that were promoted separately
  kStaleEpoch,    // the source's role is older: it was the primary once
  kSourceBehind,  // the source was rolled back: the destination holds a newer transfer
};

struct Conflict {
  ConflictKind kind;
  std::string text;   // one sentence with the facts
  std::string token;  // 12 hex digits that stand for exactly these facts; empty: nothing permits it
};

// The condition reason of a kind: PeerIdentityMismatch and so on.
std::string_view conflict_reason(ConflictKind kind);

// The first conflict between a source and a destination; none if the transfer may begin. A higher
// epoch at the source is a change of roles and no conflict: what the destination knew of volume and
// sequence is then void.
std::optional<Conflict> find_conflict(const Identity& source, const Identity& destination);

// kIdentity with reason and token unless the transfer may begin, or its conflict is acknowledged by
// one of the tokens that either end bears. kContentOnly unless it is the transfer after the one
// that the destination completed last, or that one again: a destination that was rolled back, that
// was written as a primary, or that received another volume may hold other content under the same
// time.
Result<PeerTrust> check_identities(Role role, const Identity& own, const Identity& peer);

// The reason and the token in the text of a refusal, made here or at the peer; empty where there is
// none.
std::string_view reason_of_refusal(std::string_view message);
std::string token_of_refusal(std::string_view message);

}  // namespace volferry::cli::mover
