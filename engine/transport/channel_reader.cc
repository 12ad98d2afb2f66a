// SPDX-License-Identifier: Apache-2.0
// The reading thread of a connection: checks each frame against the protocol and the credit, then
// hands it on.
#include <signal.h>

#include <algorithm>

#include "engine/transport/internal/channel_impl.h"
#include "engine/transport/internal/refusal.h"

namespace volferry::transport {

namespace {

using wire::MessageType;

bool known(std::uint8_t type) {
  switch (static_cast<MessageType>(type)) {
    case MessageType::kHello:
    case MessageType::kHelloAck:
    case MessageType::kRefuse:
    case MessageType::kCredit:
    case MessageType::kPing:
    case MessageType::kGoodbye:
    case MessageType::kStart:
    case MessageType::kStartAck:
    case MessageType::kBeginPass:
    case MessageType::kListEnd:
    case MessageType::kFinish:
    case MessageType::kFinishAck:
    case MessageType::kDirList:
    case MessageType::kDirRelease:
    case MessageType::kFileRequest:
    case MessageType::kSegmentRequest:
    case MessageType::kFineRequest:
    case MessageType::kFineHashes:
    case MessageType::kRollingRequest:
    case MessageType::kRollingSignature:
    case MessageType::kRangeRetry:
    case MessageType::kFileCancel:
    case MessageType::kPack:
    case MessageType::kRangeData:
    case MessageType::kRangeRun:
    case MessageType::kFileEnd:
    case MessageType::kItemReport:
    case MessageType::kItemChange:
    case MessageType::kProgress:
      return true;
  }
  return false;
}

std::uint64_t charge_of(const wire::FrameHeader& header) {
  const std::uint64_t body =
      header.body_length > wire::kHeapBodyBytes ? wire::kMaxBody : header.body_length;
  return wire::kFrameCharge + header.head_length + body;
}

}  // namespace

Wait ChannelImpl::read_wait() const {
  Wait wait{.moving_deadline = nullptr};
  if (options_.idle_timeout.count() > 0) wait.deadline = Clock::now() + options_.idle_timeout;
  return wait;
}

// Everything that can be refused by a header alone, before memory is taken.
Status ChannelImpl::admit(const wire::FrameHeader& header) {
  const auto type = static_cast<MessageType>(header.type);
  const wire::FrameClass frame_class = wire::frame_class(type);
  if (!known(header.type)) {
    if ((header.flags & wire::kFrameOptional) != 0) return {};
    return fail_with(Code::kProtocol, "unknown frame type " + std::to_string(header.type));
  }
  if (frame_class != wire::FrameClass::kData && header.body_length != 0) {
    return fail_with(Code::kProtocol, "a body on a frame that has none");
  }
  if (frame_class == wire::FrameClass::kControl) return {};
  const std::lock_guard lock(mutex_);
  if (reason_) return {};
  ReceiveWindow& window = frame_class == wire::FrameClass::kData ? receive_data_ : receive_list_;
  if (window.receive(charge_of(header))) return {};
  return fail_with(Code::kProtocol, "the peer sent more than its credit");
}

Status ChannelImpl::take_credit(const wire::Frame& frame) {
  wire::Credit credit;
  VF_TRY(wire::decode(frame.head, credit));
  {
    const std::lock_guard lock(mutex_);
    if (!send_list_.give_back(credit.list) || !send_data_.give_back(credit.data)) {
      return fail_with(Code::kProtocol, "the peer returned more credit than was spent");
    }
  }
  room_.notify_all();
  return {};
}

Status ChannelImpl::take(Connection& connection, wire::Frame frame, bool& goodbye) {
  if (!known(static_cast<std::uint8_t>(frame.type))) return {};
  switch (frame.type) {
    case MessageType::kPing:
      return {};
    case MessageType::kGoodbye:
      goodbye = true;
      return {};
    case MessageType::kCredit:
      return take_credit(frame);
    case MessageType::kRefuse: {
      wire::Refuse refuse;
      VF_TRY(wire::decode(frame.head, refuse));
      fail(refusal_error(refuse));
      connection.link->stop();
      return {};
    }
    case MessageType::kHello:
    case MessageType::kHelloAck:
      return fail_with(Code::kProtocol, "a handshake inside the session");
    default:
      handler_->on_frame(std::move(frame));
      return {};
  }
}

// Reads until the peer ends the stream. Once the channel is over, frames are read and dropped.
Status ChannelImpl::read_frames(Connection& connection) {
  FrameReader reader(*connection.link, options_.receive_pool, true);
  bool goodbye = false;
  const auto admitted = [this](const wire::FrameHeader& header) { return admit(header); };
  const auto waiting = [this] { return read_wait(); };
  for (;;) {
    VF_ASSIGN(std::optional<wire::Frame> frame, reader.next(wire::kMaxHead, admitted, waiting));
    if (!frame && goodbye) return {};
    if (!frame) return fail_with(Code::kConnectionLost, "the peer closed the connection");
    if (goodbye) return fail_with(Code::kProtocol, "a frame after Goodbye");
    look_whether_busy(connection);
    bool dropping = false;
    {
      const std::lock_guard lock(mutex_);
      dropping = reason_.has_value();
    }
    if (!dropping) VF_TRY(take(connection, *std::move(frame), goodbye));
  }
}

void ChannelImpl::read_loop(Connection& connection) {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  Status status = read_frames(connection);
  if (!status && status.error().code == Code::kTimeout) {
    status = fail_with(Code::kConnectionLost, "nothing came from the peer for too long");
  }
  reader_ended(connection, std::move(status));
}

void ChannelImpl::reader_ended(Connection& connection, Status status) {
  if (!status) {
    // What the peer did wrong it should know; where the connection broke there is nobody to tell.
    const bool tell = status.error().code == Code::kProtocol;
    tell ? abort(status.error()) : fail(status.error());
  }
  std::unique_lock lock(mutex_);
  connection.reader_done = true;
  const bool last = --live_readers_ == 0;
  const Status reason = reason_locked();
  lock.unlock();
  if (last) handler_->on_closed(reason);
  ended_.notify_all();
}

}  // namespace volferry::transport
