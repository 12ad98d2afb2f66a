// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/conflict.h"

#include <gtest/gtest.h>

#include <set>

namespace volferry::cli::mover {
namespace {

// A source that is about to send transfer 8 to a destination that has completed 7.
Identity source() {
  return {.replication_id = "db",
          .epoch = "2-aa",
          .seq = 8,
          .attempt = "try-8",
          .source_volume_id = "volume-1"};
}
Identity destination() {
  return {.replication_id = "db",
          .epoch = "2-aa",
          .seq = 7,
          .attempt = "try-7",
          .source_volume_id = "volume-1"};
}

std::string found(const Identity& from, const Identity& to) {
  const auto conflict = find_conflict(from, to);
  return conflict ? std::string(conflict_reason(conflict->kind)) : "";
}

TEST(Conflict, NoneBetweenPeersThatBelongTogether) {
  EXPECT_EQ(found(source(), destination()), "");
  EXPECT_EQ(found(Identity{.seq = 1, .attempt = "a", .source_volume_id = "v"}, Identity{}), "")
      << "the first transfer";
}

TEST(Conflict, TimesAreBelievedOnlyOfTheTransferThatFollows) {
  const auto trust = [](const Identity& from, const Identity& to) {
    const auto there = check_identities(Role::kDestination, to, from);
    EXPECT_EQ(there.value(), check_identities(Role::kSource, from, to).value());
    return *there;
  };
  const Identity to = destination();
  Identity from = source();
  from.seq = to.seq + 1;
  EXPECT_EQ(trust(from, to), PeerTrust::kTimes);
  EXPECT_EQ(trust(Identity{.seq = 1, .attempt = "a"}, Identity{}), PeerTrust::kTimes);
  Identity again = to;
  EXPECT_EQ(trust(again, to), PeerTrust::kTimes) << "a plain retry";
  from.seq = to.seq + 2;
  EXPECT_EQ(trust(from, to), PeerTrust::kContentOnly) << "the destination was rolled back";
  from = {.replication_id = "db", .epoch = "3-bb", .seq = to.seq + 1, .attempt = "a"};
  EXPECT_EQ(trust(from, to), PeerTrust::kContentOnly) << "the destination was a primary";
  from = source();
  from.seq = to.seq - 1;
  from.acknowledged = find_conflict(from, to)->token;
  EXPECT_EQ(trust(from, to), PeerTrust::kContentOnly) << "acknowledged";
}

TEST(Conflict, OtherReplication) {
  Identity from = source();
  from.replication_id = "";
  EXPECT_EQ(found(from, destination()), "PeerIdentityMismatch");
}

TEST(Conflict, OtherVolume) {
  Identity from = source();
  from.source_volume_id = "volume-2";
  EXPECT_EQ(found(from, destination()), "PeerIdentityMismatch");
  Identity fresh = destination();
  fresh.source_volume_id = "";
  EXPECT_EQ(found(from, fresh), "") << "nothing is pinned yet";
}

TEST(Conflict, StaleEpoch) {
  Identity from = source();
  from.epoch = "1-aa";
  EXPECT_EQ(found(from, destination()), "StaleEpoch");
  from.epoch = "";
  EXPECT_EQ(found(from, destination()), "StaleEpoch") << "an epoch nobody named is the first";
  from.epoch = "10-aa";
  EXPECT_EQ(found(from, destination()), "") << "counters are numbers, not texts";
}

TEST(Conflict, PromotedSeparately) {
  Identity from = source();
  from.epoch = "2-bb";
  EXPECT_EQ(found(from, destination()), "PeerIdentityMismatch");
}

TEST(Conflict, ChangeOfRolesVoidsVolumeAndSequence) {
  Identity from = source();
  from.epoch = "3-cc";
  from.seq = 1;
  from.source_volume_id = "volume-2";
  EXPECT_EQ(found(from, destination()), "");
}

TEST(Conflict, Sequence) {
  Identity from = source();
  from.seq = 6;
  EXPECT_EQ(found(from, destination()), "SourceBehindPeer");
  from.seq = 7;
  EXPECT_EQ(found(from, destination()), "SourceBehindPeer") << "the same number, another attempt";
  from.attempt = "try-7";
  EXPECT_EQ(found(from, destination()), "") << "a plain retry";
  from.seq = 100;
  EXPECT_EQ(found(from, destination()), "") << "the destination was rolled back";
}

TEST(Conflict, VolumeModeCannotBeAcknowledged) {
  Identity from = source();
  from.volume_mode = VolumeMode::kBlock;
  const auto conflict = find_conflict(from, destination());
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->token, "");
  EXPECT_FALSE(check_identities(Role::kSource, from, destination()));
}

TEST(Conflict, BothEndsComeToTheSameToken) {
  Identity from = source();
  from.seq = 3;
  const auto here = check_identities(Role::kSource, from, destination());
  const auto there = check_identities(Role::kDestination, destination(), from);
  ASSERT_FALSE(here);
  ASSERT_FALSE(there);
  EXPECT_EQ(here.error().context, there.error().context);
  EXPECT_EQ(here.error().code, Code::kIdentity);
  EXPECT_EQ(reason_of_refusal(here.error().context), "SourceBehindPeer");
  EXPECT_EQ(token_of_refusal(here.error().context).size(), 12u);
}

TEST(Conflict, TokenPermitsExactlyItsFacts) {
  Identity from = source();
  from.seq = 3;
  const std::string token = find_conflict(from, destination())->token;
  Identity to = destination();
  to.acknowledged = "0123456789ab," + token;
  EXPECT_TRUE(check_identities(Role::kDestination, to, from));
  EXPECT_TRUE(check_identities(Role::kSource, from, to)) << "the peer permits it";
  from.acknowledged = token;
  EXPECT_TRUE(check_identities(Role::kDestination, destination(), from));
  // Another fact, another conflict.
  to.seq = 9;
  EXPECT_FALSE(check_identities(Role::kDestination, to, from));
  // Part of a token is none.
  from = source();
  from.seq = 3;
  from.acknowledged = token.substr(0, 11);
  EXPECT_FALSE(check_identities(Role::kDestination, destination(), from));
}

TEST(Conflict, TokensDifferByEachFact) {
  std::set<std::string> tokens;
  const auto add = [&](const Identity& from, const Identity& to) {
    const auto conflict = find_conflict(from, to);
    ASSERT_TRUE(conflict);
    EXPECT_TRUE(tokens.insert(conflict->token).second) << conflict->text;
  };
  Identity from = source();
  from.seq = 3;
  add(from, destination());
  from.attempt = "other";
  add(from, destination());
  from.seq = 4;
  add(from, destination());
  Identity to = destination();
  to.seq = 9;
  add(from, to);
  to.attempt = "other";
  add(from, to);
  from.epoch = "1-aa";
  add(from, to);
}

TEST(Conflict, ReadsRefusalsOfThePeer) {
  EXPECT_EQ(reason_of_refusal("peer: StaleEpoch: the source is of epoch 1"), "StaleEpoch");
  EXPECT_EQ(reason_of_refusal("StaleEpochs: no"), "");
  EXPECT_EQ(reason_of_refusal("a text with StaleEpoch: inside"), "");
  EXPECT_EQ(token_of_refusal("x: token=0123456789ab"), "0123456789ab");
  EXPECT_EQ(token_of_refusal("x: token=0123456789aX"), "");
  EXPECT_EQ(token_of_refusal("x: token=0123"), "");
  EXPECT_EQ(token_of_refusal(""), "");
}

}  // namespace
}  // namespace volferry::cli::mover
