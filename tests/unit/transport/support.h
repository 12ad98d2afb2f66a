// SPDX-License-Identifier: Apache-2.0
// What the transport's tests share: a handler that collects, channel pairs, frames with known
// content.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/unique_fd.h"
#include "engine/transport/channel.h"
#include "engine/transport/connect.h"

namespace volferry::transport::testing {

// Collects frames. With a channel to credit, each is consumed at once.
class Collector : public ChannelHandler {
 public:
  void on_frame(wire::Frame frame) override;
  void on_closed(Status reason) override;

  void credit_to(Channel* channel) { channel_ = channel; }
  void keep_frames(bool keep) {
    const std::lock_guard lock(mutex_);
    keep_ = keep;
  }
  // Wait until `count` frames have come in all, or the channel has closed.
  std::size_t wait_frames(std::size_t count);
  Status wait_closed();
  bool closed();
  std::vector<wire::Frame> take_frames();
  std::uint64_t body_bytes();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<wire::Frame> frames_;
  std::size_t count_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::optional<Status> reason_;
  unsigned closed_calls_ = 0;
  Channel* channel_ = nullptr;
  bool keep_ = true;
};

// Two descriptors of one stream socket pair, each with a duplicate for the other direction.
struct SocketEnds {
  base::UniqueFd in[2];
  base::UniqueFd out[2];
};
SocketEnds socket_ends();
// Two crossed pipes.
SocketEnds pipe_ends();

struct ChannelPair {
  std::unique_ptr<Channel> client;
  std::unique_ptr<Channel> server;
};
ChannelPair connect_ends(SocketEnds ends, const ChannelOptions& client,
                         const ChannelOptions& server);
ChannelPair channel_pair(const ChannelOptions& options = {});

wire::Frame data_frame(std::uint32_t number, std::size_t body_bytes);
std::uint32_t data_number(const wire::Frame& frame);
wire::Frame list_frame(std::uint32_t dir);
wire::Frame control_frame(std::uint32_t number);

// A folder that goes away with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text, unsigned mode) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace volferry::transport::testing
