// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/conflict.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "cli/escape.h"

namespace volferry::cli::mover {

namespace {

constexpr std::string_view kTokenMark = "token=";
constexpr std::string_view kPeerMark = "peer: ";  // before what the other end said
constexpr std::size_t kTokenDigits = 12;

// COUNTER-NONCE; an empty epoch is the first, which nobody has named yet.
struct Epoch {
  std::uint64_t counter = 0;
  std::string_view nonce;
};

Epoch split_epoch(std::string_view text) {
  Epoch epoch;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return epoch;
  std::from_chars(text.data(), text.data() + dash, epoch.counter);
  epoch.nonce = text.substr(dash + 1);
  return epoch;
}

// Of everything in both tuples that a conflict can rest on. A size or a final sync is none of it.
std::string make_token(std::string_view reason, const Identity& source,
                       const Identity& destination) {
  // Lengths keep two lists of facts from having the same text.
  std::string facts;
  const auto add = [&facts](std::string_view fact) {
    facts += fmt::format("{}:{};", fact.size(), fact);
  };
  add(reason);
  for (const Identity* end : {&source, &destination}) {
    add(end->replication_id);
    add(end->epoch);
    add(std::to_string(end->seq));
    add(end->attempt);
    add(end->source_volume_id);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(facts.data(), facts.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string token;
  for (std::size_t i = 0; i < kTokenDigits / 2; ++i) token += fmt::format("{:02x}", digest[i]);
  return token;
}

Conflict conflict(ConflictKind kind, std::string text, const Identity& source,
                  const Identity& destination) {
  return {kind, std::move(text), make_token(conflict_reason(kind), source, destination)};
}

std::optional<Conflict> epoch_conflict(const Identity& source, const Identity& destination) {
  const Epoch from = split_epoch(source.epoch);
  const Epoch to = split_epoch(destination.epoch);
  if (from.counter < to.counter)
    return conflict(ConflictKind::kStaleEpoch,
                    fmt::format("the source is of epoch {}, the destination of {}: it was promoted "
                                "since, and holds what the source lacks",
                                from.counter, to.counter),
                    source, destination);
  if (from.counter == to.counter && from.nonce != to.nonce && !from.nonce.empty() &&
      !to.nonce.empty())
    return conflict(ConflictKind::kPeerIdentity,
                    fmt::format("both ends are of epoch {} but not of the same one: they were "
                                "promoted separately",
                                from.counter),
                    source, destination);
  return std::nullopt;
}

// The transfer that the destination completed last, once more.
bool repeats(const Identity& source, const Identity& destination) {
  return source.seq == destination.seq && source.attempt == destination.attempt;
}

// Whether all that the destination holds came from this source, up to the transfer before this one.
bool follows(const Identity& source, const Identity& destination) {
  const bool next = source.seq == destination.seq + 1 || repeats(source, destination);
  return next && source.epoch == destination.epoch;
}

std::optional<Conflict> history_conflict(const Identity& source, const Identity& destination) {
  const bool other_volume = !destination.source_volume_id.empty() &&
                            destination.source_volume_id != source.source_volume_id;
  if (other_volume)
    return conflict(ConflictKind::kPeerIdentity,
                    "the destination has received another volume until now", source, destination);
  if (source.seq > destination.seq || repeats(source, destination)) return std::nullopt;
  return conflict(ConflictKind::kSourceBehind,
                  fmt::format("the source sends transfer {}, the destination has completed {}: the "
                              "source was rolled back",
                              source.seq, destination.seq),
                  source, destination);
}

// Whether the token stands in a list that is separated by commas.
bool listed(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == token) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

std::string_view conflict_reason(ConflictKind kind) {
  switch (kind) {
    case ConflictKind::kStaleEpoch:
      return "StaleEpoch";
    case ConflictKind::kSourceBehind:
      return "SourceBehindPeer";
    case ConflictKind::kVolumeMode:
    case ConflictKind::kPeerIdentity:
      break;
  }
  return "PeerIdentityMismatch";
}

std::optional<Conflict> find_conflict(const Identity& source, const Identity& destination) {
  if (source.volume_mode != destination.volume_mode)
    return Conflict{ConflictKind::kVolumeMode,
                    fmt::format("volumeMode differs: {} at the source, {} at the destination; give "
                                "both ends claims of the same volumeMode",
                                mode_name(source.volume_mode), mode_name(destination.volume_mode)),
                    ""};
  if (source.replication_id != destination.replication_id)
    return conflict(
        ConflictKind::kPeerIdentity,
        fmt::format("the source belongs to replication '{}', the destination to '{}'",
                    escape_bytes(source.replication_id), escape_bytes(destination.replication_id)),
        source, destination);
  if (auto found = epoch_conflict(source, destination)) return found;
  if (split_epoch(source.epoch).counter > split_epoch(destination.epoch).counter)
    return std::nullopt;
  return history_conflict(source, destination);
}

Result<PeerTrust> check_identities(Role role, const Identity& own, const Identity& peer) {
  const Identity& source = role == Role::kSource ? own : peer;
  const Identity& destination = role == Role::kSource ? peer : own;
  const auto found = find_conflict(source, destination);
  if (!found) return follows(source, destination) ? PeerTrust::kTimes : PeerTrust::kContentOnly;
  if (found->token.empty()) return fail_with(Code::kIdentity, found->text);
  if (listed(own.acknowledged, found->token) || listed(peer.acknowledged, found->token))
    return PeerTrust::kContentOnly;
  return fail_with(
      Code::kIdentity,
      fmt::format("{}: {}; nothing was written. If it is meant all the same, "
                  "acknowledge this one conflict: {}{}",
                  conflict_reason(found->kind), found->text, kTokenMark, found->token));
}

std::string_view reason_of_refusal(std::string_view message) {
  if (message.starts_with(kPeerMark)) message.remove_prefix(kPeerMark.size());
  for (const auto kind :
       {ConflictKind::kStaleEpoch, ConflictKind::kSourceBehind, ConflictKind::kPeerIdentity}) {
    const std::string_view reason = conflict_reason(kind);
    if (message.starts_with(reason) && message.substr(reason.size()).starts_with(": "))
      return reason;
  }
  return "";
}

std::string token_of_refusal(std::string_view message) {
  const std::size_t mark = message.find(kTokenMark);
  if (mark == std::string_view::npos) return "";
  const std::string_view token = message.substr(mark + kTokenMark.size(), kTokenDigits);
  const bool hex = std::ranges::all_of(
      token, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && token.size() == kTokenDigits ? std::string(token) : "";
}

}  // namespace volferry::cli::mover
