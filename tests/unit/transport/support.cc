// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/transport/support.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/base/check.h"

namespace volferry::transport::testing {

void Collector::on_frame(wire::Frame frame) {
  const wire::FrameClass frame_class = wire::frame_class(frame.type);
  const std::uint64_t charge = frame.charge();
  {
    const std::lock_guard lock(mutex_);
    ++count_;
    body_bytes_ += frame.body.size();
    if (keep_) frames_.push_back(std::move(frame));
  }
  changed_.notify_all();
  if (channel_ != nullptr) channel_->consumed(frame_class, charge);
}

void Collector::on_closed(Status reason) {
  const std::lock_guard lock(mutex_);
  VF_CHECK(++closed_calls_ == 1, "on_closed is called once");
  reason_ = std::move(reason);
  changed_.notify_all();
}

std::size_t Collector::wait_frames(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return count_ >= count || reason_; });
  return count_;
}

Status Collector::wait_closed() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reason_.has_value(); });
  return *reason_;
}

bool Collector::closed() {
  const std::lock_guard lock(mutex_);
  return reason_.has_value();
}

std::vector<wire::Frame> Collector::take_frames() {
  const std::lock_guard lock(mutex_);
  return std::move(frames_);
}

std::uint64_t Collector::body_bytes() {
  const std::lock_guard lock(mutex_);
  return body_bytes_;
}

SocketEnds socket_ends() {
  int fds[2];
  VF_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
  SocketEnds ends;
  for (int i = 0; i < 2; ++i) {
    ends.in[i].reset(fds[i]);
    ends.out[i].reset(::fcntl(fds[i], F_DUPFD_CLOEXEC, 0));
  }
  return ends;
}

SocketEnds pipe_ends() {
  SocketEnds ends;
  for (int i = 0; i < 2; ++i) {
    int fds[2];
    VF_CHECK(::pipe2(fds, O_CLOEXEC) == 0, "pipe");
    ends.in[i].reset(fds[0]);
    ends.out[1 - i].reset(fds[1]);
  }
  return ends;
}

ChannelPair connect_ends(SocketEnds ends, const ChannelOptions& client,
                         const ChannelOptions& server) {
  ChannelPair pair;
  std::thread answering([&] {
    Result<std::unique_ptr<Channel>> made =
        stdio_server(std::move(ends.in[1]), std::move(ends.out[1]), server);
    VF_CHECK(made.has_value(), "stdio_server");
    pair.server = *std::move(made);
  });
  Result<std::unique_ptr<Channel>> made =
      stdio_client(std::move(ends.in[0]), std::move(ends.out[0]), client);
  VF_CHECK(made.has_value(), "stdio_client");
  pair.client = *std::move(made);
  answering.join();
  return pair;
}

ChannelPair channel_pair(const ChannelOptions& options) {
  return connect_ends(socket_ends(), options, options);
}

wire::Frame data_frame(std::uint32_t number, std::size_t body_bytes) {
  base::Buffer body = base::Buffer::heap(body_bytes);
  for (std::size_t i = 0; i < body_bytes; ++i) {
    body.data()[i] = static_cast<std::uint8_t>(number + i * 31);
  }
  body.set_size(body_bytes);
  wire::FileEnd end;
  end.req = number;
  wire::Frame frame = wire::make_frame(end, std::move(body));
  frame.type = wire::MessageType::kRangeData;  // the channel does not look into heads
  return frame;
}

std::uint32_t data_number(const wire::Frame& frame) {
  wire::FileEnd end;
  VF_CHECK(wire::decode(frame.head, end).has_value(), "test frame");
  for (std::size_t i = 0; i < frame.body.size(); ++i) {
    VF_CHECK(frame.body.data()[i] == static_cast<std::uint8_t>(end.req + i * 31), "body damaged");
  }
  return end.req;
}

wire::Frame list_frame(std::uint32_t dir) {
  wire::DirList list;
  list.dir = dir;
  list.name = dir == 0 ? "" : "d";
  return wire::make_frame(list);
}

wire::Frame control_frame(std::uint32_t number) {
  return wire::make_frame(wire::DirRelease{number});
}

TempDir::TempDir() {
  std::string pattern = std::filesystem::temp_directory_path() / "volferry-XXXXXX";
  VF_CHECK(::mkdtemp(pattern.data()) != nullptr, "mkdtemp");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::write(const std::string& name, const std::string& text, unsigned mode) const {
  std::string path = file(name);
  std::ofstream(path) << text;
  VF_CHECK(::chmod(path.c_str(), mode) == 0, "chmod");
  return path;
}

}  // namespace volferry::transport::testing
