// SPDX-License-Identifier: Apache-2.0
// The sending end of one session: lists the volume when asked, and answers the receiver's requests
// for content.
//
// Frames arrive on reader threads, which only queue work. One thread (`run`) walks; workers read,
// hash, compare and send. States of the run: waiting for BeginPass -> walking -> waiting ... ->
// Finish.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <variant>

#include "engine/session/body_coder.h"
#include "engine/session/source_tree.h"
#include "engine/session/workers.h"
#include "engine/transport/channel.h"

namespace volferry::session {

struct OutFile;

class Sender final : public ListSink {
 public:
  // All references outlive the sender.
  struct Parts {
    transport::Channel& channel;
    SourceTree& source;
    Workers& workers;
    base::BufferPool& pool;
    const delta::StrongHash& hash;
    const VolumeOptions& options;
    Tally& tally;
    BodyCoder& coder;
    bool direct_reads = false;  // O_DIRECT for large files that are not cached
  };
  explicit Sender(const Parts& parts) : parts_(parts) {}

  // Reader threads. True if the frame was one of a sender's.
  bool on_frame(wire::Frame& frame);
  // Wakes `run`; the channel is over.
  void on_closed();

  // Serves passes until the receiver's Finish, which it returns.
  Result<wire::Finish> run();

  Status on_list(wire::DirList list) override;

 private:
  friend class OutFileWork;
  using FilePtr = std::shared_ptr<OutFile>;
  using Command = std::variant<wire::BeginPass, wire::Finish>;

  template <typename Message, typename Handler>
  bool dispatch(const wire::Frame& frame, Handler handler);
  void protocol_error(Error error);
  FilePtr find(std::uint32_t req);

  void on_file_request(wire::FileRequest request);
  void on_rolling_signature(wire::RollingSignature part);

  // Small files: one frame for many.
  void pack_job(Worker& worker);
  bool take_small(std::vector<wire::FileRequest>& batch);
  wire::PackedFile read_small(const wire::FileRequest& request, base::MutBytes room);

  Parts parts_;
  std::mutex mutex_;
  std::condition_variable commands_ready_;
  std::deque<Command> commands_;
  bool closed_ = false;
  std::unordered_map<std::uint32_t, FilePtr> files_;
  std::deque<wire::FileRequest> small_;
  unsigned pack_jobs_ = 0;
};

}  // namespace volferry::session
