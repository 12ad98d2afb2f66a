// SPDX-License-Identifier: Apache-2.0
#include "engine/session/conversation.h"

#include <utility>

namespace volferry::session {

void Conversation::protocol_error(Error error) {
  channel_.abort(error);
  tally_.fail(std::move(error));
}

template <typename Message>
bool Conversation::take(const wire::Frame& frame, std::optional<Message>& slot) {
  Message message;
  if (auto decoded = wire::decode(frame.head, message); !decoded) {
    protocol_error(std::move(decoded).error());
    return true;
  }
  const std::lock_guard lock(mutex_);
  slot = std::move(message);
  changed_.notify_all();
  return true;
}

bool Conversation::report(const wire::Frame& frame) {
  switch (frame.type) {
    case wire::MessageType::kItemReport: {
      wire::ItemReport report;
      if (auto decoded = wire::decode(frame.head, report); !decoded)
        return protocol_error(decoded.error()), true;
      switch (report.kind) {
        case wire::ReportKind::kError:
          tally_.item_error(report.path, report.os_errno, report.text);
          break;
        case wire::ReportKind::kChangedSource:
        case wire::ReportKind::kVanished:
          tally_.item_changed(report.path, report.text);
          break;
        case wire::ReportKind::kWarning:
          tally_.warning(report.path, report.text);
          break;
        case wire::ReportKind::kDifference: {
          DifferenceEvent event{report.path, {}};
          std::string kind;
          for (const char c : report.text + ",") {
            if (c != ',') {
              kind += c;
            } else if (!kind.empty()) {
              event.kinds.push_back(std::exchange(kind, {}));
            }
          }
          tally_.difference(event);
          break;
        }
      }
      return true;
    }
    case wire::MessageType::kItemChange: {
      wire::ItemChange change;
      if (auto decoded = wire::decode(frame.head, change); !decoded)
        return protocol_error(decoded.error()), true;
      tally_.change({change.code, change.path, change.link_target});
      return true;
    }
    case wire::MessageType::kProgress: {
      wire::Progress progress;
      if (auto decoded = wire::decode(frame.head, progress); !decoded)
        return protocol_error(decoded.error()), true;
      tally_.files_done = progress.files_done;
      tally_.bytes_done = progress.bytes_done;
      return true;
    }
    default:
      return false;
  }
}

bool Conversation::to_role(wire::Frame& frame) {
  const std::shared_lock lock(role_mutex_);
  if (sender_ != nullptr) return sender_->on_frame(frame);
  if (content_ != nullptr) return content_->on_frame(frame);
  return false;
}

void Conversation::on_frame(wire::Frame frame) {
  switch (frame.type) {
    case wire::MessageType::kStart:
      take(frame, start_);
      return;
    case wire::MessageType::kStartAck:
      take(frame, start_ack_);
      return;
    case wire::MessageType::kFinishAck:
      take(frame, finish_ack_);
      return;
    case wire::MessageType::kDirList: {
      Chunk chunk;
      chunk.charge = frame.charge();
      if (auto decoded = wire::decode(frame.head, chunk.list); !decoded)
        return protocol_error(decoded.error());
      chunks_.push(std::move(chunk));
      return;
    }
    case wire::MessageType::kListEnd: {
      wire::ListEnd end;
      if (auto decoded = wire::decode(frame.head, end); !decoded)
        return protocol_error(decoded.error());
      tally_.source_errors.fetch_add(end.read_errors);
      Chunk chunk;
      chunk.charge = frame.charge();
      chunk.end = true;
      chunks_.push(std::move(chunk));
      return;
    }
    default:
      break;
  }
  if (report(frame) || to_role(frame)) return;
  switch (frame.type) {
    case wire::MessageType::kBeginPass: {
      {
        const std::unique_lock lock(role_mutex_);
        if (sender_ == nullptr && early_.empty()) {
          early_.push_back(std::move(frame));
          return;
        }
      }
      // Attached meanwhile.
      if (to_role(frame)) return;
      break;
    }
    // The last of a pass that is over: of files that failed here.
    case wire::MessageType::kPack:
    case wire::MessageType::kRangeData:
    case wire::MessageType::kRangeRun:
    case wire::MessageType::kFileEnd:
      channel_.consumed(wire::FrameClass::kData, frame.charge());
      return;
    case wire::MessageType::kFineRequest:
    case wire::MessageType::kRollingRequest:
      return;
    default:
      break;
  }
  protocol_error({Code::kProtocol, 0, "a message that does not belong here"});
}

void Conversation::on_closed(Status reason) {
  // A peer that is told to stop is, for this end, a lost connection: to be tried again.
  if (!reason && !tally_.stopped() &&
      (reason.error().code == Code::kTerminated || reason.error().code == Code::kInterrupted)) {
    reason = fail_with(Code::kConnectionLost, reason.error().context);
  }
  {
    const std::lock_guard lock(mutex_);
    closed_ = reason;
    changed_.notify_all();
  }
  if (!reason) tally_.fail(reason.error());
  chunks_.close();
  const std::shared_lock lock(role_mutex_);
  if (sender_ != nullptr) sender_->on_closed();
}

std::optional<Status> Conversation::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

template <typename Message>
Result<Message> Conversation::wait(std::optional<Message>& slot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slot.has_value() || closed_.has_value(); });
  if (slot) return *std::exchange(slot, std::nullopt);
  if (closed_->has_value())
    return fail_with(Code::kConnectionLost, "the peer ended the session early");
  return std::unexpected(closed_->error());
}

Result<wire::Start> Conversation::wait_start() { return wait(start_); }
Result<wire::StartAck> Conversation::wait_start_ack() { return wait(start_ack_); }
Result<wire::Finish> Conversation::wait_finish_ack() { return wait(finish_ack_); }

void Conversation::attach(Sender* sender) {
  std::vector<wire::Frame> early;
  {
    const std::unique_lock lock(role_mutex_);
    sender_ = sender;
    if (sender != nullptr) early.swap(early_);
  }
  for (wire::Frame& frame : early) (void)to_role(frame);
  if (sender != nullptr && closed()) sender->on_closed();
}

void Conversation::attach(RemoteContent* content) {
  const std::unique_lock lock(role_mutex_);
  content_ = content;
}

Status Conversation::begin(const wire::BeginPass& pass) {
  pass_ = pass.pass;
  return channel_.send(wire::make_frame(pass));
}

Result<std::optional<wire::DirList>> Conversation::next() {
  if (used_charge_ > 0) channel_.consumed(wire::FrameClass::kList, std::exchange(used_charge_, 0));
  std::optional<Chunk> chunk = chunks_.pop();
  if (!chunk) {
    if (auto fatal = tally_.fatal()) return std::unexpected(*fatal);
    return fail_with(Code::kConnectionLost, "the connection ended inside the list");
  }
  used_charge_ = chunk->charge;
  if (chunk->end) {
    channel_.consumed(wire::FrameClass::kList, std::exchange(used_charge_, 0));
    return std::optional<wire::DirList>();
  }
  return std::optional(std::move(chunk->list));
}

}  // namespace volferry::session
