// SPDX-License-Identifier: Apache-2.0
// One session's frames, handed to whoever they are for: the handshake of volumes (Start, StartAck),
// reports, and then the sender or the receiver, whichever this end is.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "engine/base/bounded_queue.h"
#include "engine/session/landing.h"
#include "engine/session/remote_content.h"
#include "engine/session/sender.h"
#include "engine/session/tally.h"
#include "engine/transport/channel.h"

namespace volferry::session {

class Conversation final : public transport::ChannelHandler, public ListFeed {
 public:
  // Both outlive the conversation. `tally` gets the peer's reports.
  Conversation(transport::Channel& channel, Tally& tally) : channel_(channel), tally_(tally) {}

  void on_frame(wire::Frame frame) override;
  void on_closed(Status reason) override;

  // The peer's Start, StartAck or FinishAck; fails once the channel is over. Call from one thread.
  Result<wire::Start> wait_start();
  Result<wire::StartAck> wait_start_ack();
  Result<wire::Finish> wait_finish_ack();

  // From now on, frames of that role go to it; those that came before are handed over now. Detach
  // before it dies.
  void attach(Sender* sender);
  void attach(RemoteContent* content);

  // ListFeed: a receiver's list.
  Status begin(const wire::BeginPass& pass) override;
  Result<std::optional<wire::DirList>> next() override;

  // The channel's end, if it has ended.
  std::optional<Status> closed() const;

 private:
  template <typename Message>
  bool take(const wire::Frame& frame, std::optional<Message>& slot);
  template <typename Message>
  Result<Message> wait(std::optional<Message>& slot);
  bool report(const wire::Frame& frame);
  void protocol_error(Error error);
  bool to_role(wire::Frame& frame);

  transport::Channel& channel_;
  Tally& tally_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<wire::Start> start_;
  std::optional<wire::StartAck> start_ack_;
  std::optional<wire::Finish> finish_ack_;
  std::optional<Status> closed_;

  std::shared_mutex role_mutex_;
  Sender* sender_ = nullptr;
  RemoteContent* content_ = nullptr;
  std::vector<wire::Frame>
      early_;  // the receiver's BeginPass, if it came before the sender was attached

  struct Chunk {
    wire::DirList list;
    std::uint64_t charge = 0;
    bool end = false;
  };
  base::BoundedQueue<Chunk> chunks_{1u << 20};
  std::uint32_t pass_ = 0;
  std::uint64_t used_charge_ = 0;
};

}  // namespace volferry::session
