// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/handshake.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/transport/internal/frame_reader.h"
#include "engine/transport/internal/refusal.h"

namespace volferry::transport {

namespace {

constexpr std::chrono::milliseconds kLinger{500};
constexpr std::size_t kMaxLingerBytes = 64 << 10;

Result<wire::Frame> receive_frame(Link& link, const Wait& wait) {
  FrameReader reader(link, nullptr, false);
  const auto admit = [](const wire::FrameHeader& header) -> Status {
    if (header.body_length == 0) return {};
    return fail_with(Code::kProtocol, "the peer does not speak volferry's protocol");
  };
  VF_ASSIGN(std::optional<wire::Frame> frame,
            reader.next(wire::kMaxHelloHead, admit, [&] { return wait; }));
  if (!frame) {
    return fail_with(Code::kConnectionLost,
                     "the peer closed the connection before it said anything; where that "
                     "goes on, it may be another program, such as VolSync's own mover",
                     ECONNRESET);
  }
  return *std::move(frame);
}

Result<wire::HelloAck> exchange(Link& link, const wire::Hello& hello, const Wait& wait,
                                const wire::Frame* opening = nullptr) {
  VF_TRY(send_frame(link, wire::make_frame(hello), wait));
  // A peer that has closed already has told why, or the read tells that it has not.
  if (opening != nullptr) (void)send_frame(link, *opening, wait);
  VF_ASSIGN(const wire::Frame answer, receive_frame(link, wait));
  if (answer.type == wire::MessageType::kRefuse) {
    wire::Refuse refuse;
    VF_TRY(wire::decode(answer.head, refuse));
    return std::unexpected(refusal_error(refuse));
  }
  if (answer.type != wire::MessageType::kHelloAck) {
    return fail_with(Code::kProtocol, "the peer does not speak volferry's protocol");
  }
  wire::HelloAck ack;
  VF_TRY(wire::decode(answer.head, ack));
  return ack;
}

}  // namespace

Status send_frame(Link& link, const wire::Frame& frame, const Wait& wait) {
  const std::vector<std::uint8_t> bytes = wire::frame_bytes(frame, 0, !link.has_integrity());
  const base::Bytes piece(bytes);
  return link.write({&piece, 1}, wait);
}

namespace {

// Sends the last frame. Closing with unread bytes could reset the connection before it is read.
void end_with(Link& link, const wire::Frame& frame, const Wait& wait) {
  if (!send_frame(link, frame, wait)) return;
  link.end_writing();
  std::uint8_t dropped[4096];
  const Wait linger{.deadline = std::min(wait.deadline, Clock::now() + kLinger)};
  for (std::size_t total = 0; total < kMaxLingerBytes;) {
    const Result<std::size_t> got = link.read(dropped, linger);
    if (!got || *got == 0) break;
    total += *got;
  }
}

}  // namespace

void say_goodbye(Link& link, const Wait& wait) {
  wire::Frame goodbye;
  goodbye.type = wire::MessageType::kGoodbye;
  end_with(link, goodbye, wait);
}

std::unexpected<Error> refuse(Link& link, const Error& error, const Wait& wait) {
  end_with(link, make_refusal(error), wait);
  return std::unexpected(error);
}

Result<wire::HelloAck> hello_first(Link& link, const ChannelOptions& options, const Wait& wait) {
  wire::Hello hello;
  hello.list_credit = options.list_credit;
  hello.data_credit = options.data_credit;
  hello.agent = options.agent;
  hello.identity = options.identity;
  Result<wire::HelloAck> ack = exchange(link, hello, wait, options.opening);
  if (ack || ack.error().code != Code::kProtocol) return ack;
  return refuse(link, ack.error(), wait);
}

Status hello_join(Link& link, const wire::HelloAck& first, const JoinToken& token,
                  std::uint32_t stream, const Wait& wait) {
  wire::Hello hello;
  hello.stream = stream;
  hello.session_id = first.session_id;
  hello.join_token = token;
  VF_ASSIGN(const wire::HelloAck ack, exchange(link, hello, wait));
  if (ack.session_id == first.session_id) return {};
  return fail_with(Code::kProtocol, "the peer joined the connection to another session");
}

Result<wire::Hello> receive_hello(Link& link, const Wait& wait) {
  Result<wire::Frame> frame = receive_frame(link, wait);
  if (!frame && frame.error().code == Code::kProtocol) return refuse(link, frame.error(), wait);
  if (!frame) return std::unexpected(std::move(frame).error());
  if (frame->type != wire::MessageType::kHello) {
    return refuse(link, {Code::kProtocol, 0, "the first frame was not Hello"}, wait);
  }
  wire::Hello hello;
  if (const Status status = wire::decode(frame->head, hello); !status) {
    return refuse(link, status.error(), wait);
  }
  return hello;
}

wire::HelloAck make_ack(const ChannelOptions& options, const SessionId& session) {
  wire::HelloAck ack;
  ack.session_id = session;
  ack.max_streams = std::max(1u, options.streams);
  ack.list_credit = options.list_credit;
  ack.data_credit = options.data_credit;
  ack.agent = options.agent;
  ack.identity = options.identity;
  return ack;
}

PeerInfo peer_info(const wire::Hello& hello) {
  return {hello.agent, hello.identity, hello.list_credit, hello.data_credit};
}

PeerInfo peer_info(const wire::HelloAck& ack) {
  return {ack.agent, ack.identity, ack.list_credit, ack.data_credit};
}

}  // namespace volferry::transport
