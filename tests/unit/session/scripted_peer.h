// SPDX-License-Identifier: Apache-2.0
// A client whose every message the test writes, against a real server session over one folder.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/session/support.h"

#include "engine/delta/strong_hash.h"
#include "engine/sync.h"
#include "engine/transport/channel.h"
#include "engine/transport/wire/frame.h"

namespace volferry::session::testing {

class ScriptedPeer {
 public:
  explicit ScriptedPeer(const std::string& root);
  ScriptedPeer(const std::string& root, const ServeOptions& serve);
  ~ScriptedPeer();
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  // Sends Start; push: this peer is the sender of a directory.
  void start(wire::Direction direction, std::uint64_t flags = 0, const std::string& subpath = "");
  // As a sender: Start, and everything up to the receiver's BeginPass.
  void begin_push(std::uint64_t flags = 0);
  // As a receiver: Start and BeginPass; the list that came.
  std::vector<wire::DirList> begin_pull(std::uint64_t flags = 0);

  template <typename Message>
  void send(const Message& message, const std::string& body = {}) {
    (void)channel_->send(wire::make_frame(
        message, body.empty() ? base::Buffer() : base::Buffer::copy_of(base::as_bytes(body))));
  }
  // The next message of this type; those of other types before it are dropped. Nothing where the
  // session ends first.
  template <typename Message>
  std::optional<Message> wait(std::string* body = nullptr) {
    while (std::optional<wire::Frame> frame = next()) {
      Message message;
      if (frame->type != wire::type_of(message)) continue;
      if (body != nullptr) *body = std::string(base::as_text(frame->body.bytes()));
      if (wire::decode(frame->head, message)) return message;
    }
    return std::nullopt;
  }

  wire::Digest digest(const std::string& content) const;
  // A pack of one whole file.
  wire::Pack pack(std::uint32_t req, const std::string& content) const;
  // One range as a single literal.
  wire::RangeData literal(std::uint32_t req, std::uint64_t range, const std::string& content) const;
  // Sends ListEnd, serves nothing more, and lets the server finish.
  void end_list();
  // The pass is over: answers the receiver's Finish.
  void finish();
  // Why the channel ended.
  Status closed();
  // What the server returned.
  int exit_code();
  // ItemReports of errors so far.
  std::vector<wire::ItemReport> reports();

 private:
  class Inbox final : public transport::ChannelHandler {
   public:
    void on_frame(wire::Frame frame) override;
    void on_closed(Status reason) override;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<wire::Frame> frames;
    std::optional<Status> reason;
    transport::Channel* channel = nullptr;
    std::vector<wire::ItemReport> reports;
  };
  std::optional<wire::Frame> next();

  std::vector<std::uint8_t> secret_;
  std::optional<delta::StrongHash> hash_;
  Inbox inbox_;
  base::NullLogger logger_;
  Observer observer_;
  StopFlag stop_{0};
  int exit_code_ = -1;
  std::thread server_;
  std::unique_ptr<transport::Channel> channel_;
};

wire::Entry file_entry(const std::string& name, std::uint64_t size);
wire::Entry dir_entry(const std::string& name);
wire::Entry link_entry(const std::string& name, const std::string& target);
// One whole directory; 0 is the root.
wire::DirList dir_list(std::uint32_t dir, std::uint32_t parent, const std::string& name,
                       std::vector<wire::Entry> entries);

}  // namespace volferry::session::testing
