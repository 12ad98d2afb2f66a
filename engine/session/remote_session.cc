// SPDX-License-Identifier: Apache-2.0
#include "engine/session/remote_session.h"

#include <utility>

#include "engine/session/landing.h"

namespace volferry::session {

namespace {

// Detaches a role from the conversation before it is destroyed.
template <typename Role>
class Attached {
 public:
  Attached(Conversation& conversation, Role& role) : conversation_(conversation) {
    conversation_.attach(&role);
  }
  ~Attached() { conversation_.attach(static_cast<Role*>(nullptr)); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  Conversation& conversation_;
};

// RemoteContent that is attached as long as it lives.
class AttachedContent final : public ContentSource {
 public:
  AttachedContent(const InParts& parts, JobSink& sink, Conversation& conversation)
      : content_(parts, sink), attached_(conversation, content_) {}
  void fetch(FileJobPtr job) override { content_.fetch(std::move(job)); }
  void dir_released(std::uint32_t dir) override { content_.dir_released(dir); }
  void quiesce() override { content_.quiesce(); }

 private:
  RemoteContent content_;
  Attached<RemoteContent> attached_;
};

CompressChoice compress_choice(wire::CompressMode mode) {
  switch (mode) {
    case wire::CompressMode::kOff:
      return CompressChoice::kOff;
    case wire::CompressMode::kZstd:
      return CompressChoice::kZstd;
    case wire::CompressMode::kAuto:
      break;
  }
  return CompressChoice::kAuto;
}

void count_finish(Tally& tally, const wire::Finish& finish) {
  tally.files_transferred = finish.files_transferred;
  tally.files_deleted = finish.files_deleted;
  tally.literal_bytes = finish.literal_bytes;
  tally.matched_bytes = finish.matched_bytes;
  tally.zero_bytes = finish.zero_bytes;
  tally.owner_skipped = finish.owner_skipped;
  tally.files_done = tally.files_total.load();
  tally.bytes_done = tally.bytes_total.load();
}

}  // namespace

void count_wire(Tally& tally, const transport::Channel& channel) {
  const transport::ChannelStats stats = channel.stats();
  tally.wire_sent = stats.wire_sent;
  tally.wire_received = stats.wire_received;
}

wire::Finish finish_message(const Tally& tally) {
  const Summary summary = tally.summary();
  wire::Finish finish;
  finish.exit_code = static_cast<std::uint32_t>(summary.exit_code());
  if (summary.fatal) finish.text = summary.fatal->message();
  finish.files_total = summary.files_total;
  finish.files_transferred = summary.files_transferred;
  finish.files_deleted = summary.files_deleted;
  finish.dirs_total = summary.dirs_total;
  finish.bytes_total = summary.bytes_total;
  finish.literal_bytes = summary.literal_bytes;
  finish.matched_bytes = summary.matched_bytes;
  finish.zero_bytes = summary.zero_bytes;
  finish.owner_skipped = summary.owner_skipped;
  finish.differences = summary.differences;
  return finish;
}

Status run_sender(const RemoteSession& session, Volume& source, bool count) {
  VF_ASSIGN(const delta::StrongHash hash,
            delta::StrongHash::create(hash_kind(session.start.hash), session.start.hash_secret));
  SourceTree tree(std::move(source.fd), source.path, session.options, session.tally);
  BodyCoder coder(compress_choice(session.start.compress), session.start.compress_level);
  Sender sender({session.channel, tree, *session.runtime.workers, *session.runtime.work_pool, hash,
                 session.options, session.tally, coder, session.direct != DirectChoice::kOff});
  Result<wire::Finish> finish = [&] {
    const Attached<Sender> attached(session.conversation, sender);
    session.monitor.set_phase(ProgressSnapshot::Phase::kSync);
    return sender.run();
  }();
  session.runtime.work_pool->cancel();
  session.runtime.workers->stop();
  if (!finish) {
    // What ended the walk first is the reason, not that the walk was ended.
    if (auto fatal = session.tally.fatal()) return std::unexpected(*fatal);
    return std::unexpected(finish.error());
  }
  if (count) count_finish(session.tally, *finish);
  wire::Frame ack = wire::make_frame(finish_message(session.tally));
  ack.type = wire::MessageType::kFinishAck;
  return session.channel.send(std::move(ack));
}

Status run_receiver(const RemoteSession& session, Volume& destination, wire::RootKind source) {
  VF_ASSIGN(const delta::StrongHash hash,
            delta::StrongHash::create(hash_kind(session.start.hash), session.start.hash_secret));
  Landing landing(destination, source, session.options, {session.direct}, session.tally);
  BodyCoder coder(compress_choice(session.start.compress), session.start.compress_level);
  std::atomic<std::uint32_t> next_request{1};
  const InParts parts{session.channel,
                      *session.runtime.workers,
                      *session.runtime.work_pool,
                      hash,
                      session.options,
                      landing.targets(),
                      session.tally,
                      coder,
                      next_request};
  const auto content = [&](JobSink& sink) -> std::unique_ptr<ContentSource> {
    return std::make_unique<AttachedContent>(parts, sink, session.conversation);
  };
  Status done = landing.run(session.conversation, content, [&](ProgressSnapshot::Phase phase) {
    session.monitor.set_phase(phase);
  });
  session.runtime.work_pool->cancel();
  session.runtime.workers->stop();
  landing.restore();
  // Also where the pass came to its end before anybody looked: after Finish the peer could not be
  // told any more.
  if (auto fatal = session.tally.fatal()) return std::unexpected(*fatal);
  VF_TRY(done);
  VF_TRY(session.channel.send(wire::make_frame(finish_message(session.tally))));
  // Nothing follows, so the sender need not wait a round trip for our Goodbye.
  session.channel.end_sending();
  VF_ASSIGN(const wire::Finish ack, session.conversation.wait_finish_ack());
  (void)ack;
  return {};
}

}  // namespace volferry::session
