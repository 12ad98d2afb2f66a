// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "engine/session/in_file.h"

namespace volferry::session {

// Fetches content from the peer: small files whole, many to a frame; large ones through InFile.
class RemoteContent final : public ContentSource {
 public:
  RemoteContent(const InParts& parts, JobSink& sink) : parts_(parts), sink_(sink) {}

  void fetch(FileJobPtr job) override;
  void dir_released(std::uint32_t dir) override;

  // Reader threads. True if the frame was one of content's; credit is given back once it has been
  // applied.
  bool on_frame(wire::Frame& frame);
  void quiesce() override;

 private:
  using FilePtr = std::shared_ptr<InFile>;
  template <typename Message>
  std::optional<Message> decode(const wire::Frame& frame);
  void protocol_error(Error error);
  FilePtr find(std::uint32_t req);

  void fetch_small(const FileJobPtr& job, std::uint32_t req);
  void fetch_large(const FileJobPtr& job, std::uint32_t req);
  void sign_job(const FilePtr& file, Worker& worker);
  void segment_done();
  void apply_pack(const wire::Pack& pack, base::Buffer body);
  void apply_packed(const wire::PackedFile& file, base::Bytes content);
  void abandon();
  void done(const FileJobPtr& job, Outcome outcome);
  void refetch(const FileJobPtr& job, const wire::EntryMeta& meta);

  InParts parts_;
  JobSink& sink_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, FileJobPtr> small_;
  std::unordered_map<std::uint32_t, FilePtr> large_;
  std::deque<FilePtr> waiting_;  // files whose next segment waits for room
  std::size_t open_segments_ = 0;
};

}  // namespace volferry::session
