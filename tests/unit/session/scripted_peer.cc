// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/session/scripted_peer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/session/convert.h"
#include "engine/transport/connect.h"

namespace volferry::session::testing {

namespace {

// Far longer than any answer takes: only a session that hangs gets here.
constexpr auto kHung = std::chrono::seconds(60);

ServeOptions default_serve(const std::string& root) {
  ServeOptions serve;
  serve.root = root;
  serve.confine = false;
  serve.limits = quick_options();
  return serve;
}

}  // namespace

void ScriptedPeer::Inbox::on_frame(wire::Frame frame) {
  const wire::FrameClass frame_class = wire::frame_class(frame.type);
  const std::uint64_t charge = frame.charge();
  {
    const std::lock_guard lock(mutex);
    wire::ItemReport report;
    if (frame.type == wire::MessageType::kItemReport && wire::decode(frame.head, report)) {
      reports.push_back(std::move(report));
    } else if (frame.type != wire::MessageType::kProgress) {
      frames.push_back(std::move(frame));
    }
    changed.notify_all();
  }
  channel->consumed(frame_class, charge);
}

void ScriptedPeer::Inbox::on_closed(Status why) {
  const std::lock_guard lock(mutex);
  reason = std::move(why);
  changed.notify_all();
}

ScriptedPeer::ScriptedPeer(const std::string& root) : ScriptedPeer(root, default_serve(root)) {}

ScriptedPeer::ScriptedPeer(const std::string& /*root*/, const ServeOptions& serve)
    : secret_(delta::StrongHash::kSecretBytes, 7) {
  hash_ = *delta::StrongHash::create(delta::HashKind::kXxh3, secret_);
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  base::UniqueFd server_in(ends[1]);
  base::UniqueFd server_out(::fcntl(ends[1], F_DUPFD_CLOEXEC, 0));
  server_ =
      std::thread([this, serve, in = std::move(server_in), out = std::move(server_out)]() mutable {
        exit_code_ =
            run_serve_stdio(std::move(in), std::move(out), serve, observer_, logger_, stop_);
      });
  auto channel = transport::stdio_client(base::UniqueFd(ends[0]),
                                         base::UniqueFd(::fcntl(ends[0], F_DUPFD_CLOEXEC, 0)), {});
  EXPECT_TRUE(channel) << (channel ? "" : channel.error().message());
  channel_ = std::move(*channel);
  inbox_.channel = channel_.get();
  channel_->start(inbox_);
}

ScriptedPeer::~ScriptedPeer() {
  channel_.reset();
  if (server_.joinable()) server_.join();
}

void ScriptedPeer::start(wire::Direction direction, std::uint64_t flags,
                         const std::string& subpath) {
  wire::Start start;
  start.direction = direction;
  start.flags = flags;
  start.hash_secret = secret_;
  start.compress = wire::CompressMode::kOff;
  start.subpath = subpath;
  start.root_kind = wire::RootKind::kDirectory;
  send(start);
}

void ScriptedPeer::begin_push(std::uint64_t flags) {
  start(wire::Direction::kPush, flags);
  EXPECT_TRUE(wait<wire::StartAck>());
  EXPECT_TRUE(wait<wire::BeginPass>());
}

std::vector<wire::DirList> ScriptedPeer::begin_pull(std::uint64_t flags) {
  start(wire::Direction::kPull, flags);
  EXPECT_TRUE(wait<wire::StartAck>());
  send(wire::BeginPass{});
  std::vector<wire::DirList> lists;
  while (std::optional<wire::Frame> frame = next()) {
    wire::DirList list;
    if (frame->type == wire::MessageType::kListEnd) return lists;
    if (frame->type == wire::MessageType::kDirList && wire::decode(frame->head, list)) {
      lists.push_back(std::move(list));
    }
  }
  ADD_FAILURE() << "the list has no end";
  return lists;
}

std::optional<wire::Frame> ScriptedPeer::next() {
  std::unique_lock lock(inbox_.mutex);
  const bool came =
      inbox_.changed.wait_for(lock, kHung, [&] { return !inbox_.frames.empty() || inbox_.reason; });
  EXPECT_TRUE(came) << "the server neither answers nor ends";
  if (inbox_.frames.empty()) return std::nullopt;
  wire::Frame frame = std::move(inbox_.frames.front());
  inbox_.frames.pop_front();
  return frame;
}

wire::Digest ScriptedPeer::digest(const std::string& content) const {
  return to_wire(hash_->hash_range(base::as_bytes(content), false).digest);
}

wire::Pack ScriptedPeer::pack(std::uint32_t req, const std::string& content) const {
  wire::PackedFile file;
  file.req = req;
  file.digest = digest(content);
  file.length = static_cast<std::uint32_t>(content.size());
  wire::Pack pack;
  pack.raw_bytes = file.length;
  pack.files.push_back(std::move(file));
  return pack;
}

wire::RangeData ScriptedPeer::literal(std::uint32_t req, std::uint64_t range,
                                      const std::string& content) const {
  wire::RangeData data;
  data.req = req;
  data.range = range;
  data.raw_bytes = static_cast<std::uint32_t>(content.size());
  data.digest = digest(content);
  data.ops = {{wire::OpKind::kLiteral, data.raw_bytes, 0}};
  return data;
}

void ScriptedPeer::end_list() { send(wire::ListEnd{}); }

void ScriptedPeer::finish() {
  const std::optional<wire::Finish> theirs = wait<wire::Finish>();
  EXPECT_TRUE(theirs);
  if (!theirs) return;
  wire::Frame ack = wire::make_frame(wire::Finish{});
  ack.type = wire::MessageType::kFinishAck;
  (void)channel_->send(std::move(ack));
  (void)channel_->finish(std::chrono::seconds(10));
}

Status ScriptedPeer::closed() {
  std::unique_lock lock(inbox_.mutex);
  const bool ended =
      inbox_.changed.wait_for(lock, kHung, [&] { return inbox_.reason.has_value(); });
  EXPECT_TRUE(ended) << "the session goes on";
  return inbox_.reason.value_or(Status());
}

int ScriptedPeer::exit_code() {
  if (::testing::Test::HasFailure()) channel_->abort({Code::kCancelled, 0, "the test has failed"});
  if (server_.joinable()) server_.join();
  return exit_code_;
}

std::vector<wire::ItemReport> ScriptedPeer::reports() {
  const std::lock_guard lock(inbox_.mutex);
  return inbox_.reports;
}

wire::Entry file_entry(const std::string& name, std::uint64_t size) {
  wire::Entry entry;
  entry.name = name;
  entry.meta.mode = 0644;
  entry.meta.size = size;
  entry.meta.mtime_s = 1000;
  return entry;
}

wire::Entry dir_entry(const std::string& name) {
  wire::Entry entry;
  entry.name = name;
  entry.meta.type = wire::EntryType::kDirectory;
  entry.meta.mode = 0755;
  return entry;
}

wire::Entry link_entry(const std::string& name, const std::string& target) {
  wire::Entry entry;
  entry.name = name;
  entry.meta.type = wire::EntryType::kSymlink;
  entry.meta.link_target = target;
  return entry;
}

wire::DirList dir_list(std::uint32_t dir, std::uint32_t parent, const std::string& name,
                       std::vector<wire::Entry> entries) {
  wire::DirList list;
  list.dir = dir;
  list.parent = parent;
  list.name = name;
  list.meta.type = wire::EntryType::kDirectory;
  list.meta.mode = 0755;
  list.entries = std::move(entries);
  return list;
}

}  // namespace volferry::session::testing
