// SPDX-License-Identifier: Apache-2.0
// A frame: what travels on a connection.
//
//   offset size
//   0      1    type (MessageType; unknown types with flag kOptional are skipped, others end the
//   session) 1      1    flags 2      2    stream the frame was sent on, for tracing 4      4 head
//   length, at most kMaxHead 8      4    body length, at most kMaxBody 12     4    checksum: low 32
//   bits of XXH64 over head then body, on channels without integrity of their own; else 0 16     ..
//   head: the message's fields, then the body: bulk bytes
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/transport/wire/messages.h"

namespace volferry::wire {

inline constexpr std::size_t kFrameHeaderBytes = 16;
inline constexpr std::uint8_t kFrameOptional = 1;

struct Frame {
  MessageType type = MessageType::kPing;
  std::uint8_t flags = 0;
  std::vector<std::uint8_t> head;
  base::Buffer body;

  // What the frame costs of its receiver's credit: kFrameCharge, the head, and the body; a body
  // past kHeapBodyBytes occupies a whole pool slot and costs kMaxBody.
  std::uint64_t charge() const;
};

template <typename Message>
Frame make_frame(const Message& message, base::Buffer body = {}) {
  return Frame{type_of(message), 0, encode(message), std::move(body)};
}

struct FrameHeader {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint16_t stream = 0;
  std::uint32_t head_length = 0;
  std::uint32_t body_length = 0;
  std::uint32_t checksum = 0;
};
void encode_header(const FrameHeader& header, base::MutBytes out);  // out: kFrameHeaderBytes
// Fails with kProtocol where a length is past its limit (`max_head` is kMaxHelloHead until the
// session is up).
Result<FrameHeader> decode_header(base::Bytes bytes, std::size_t max_head);

// The checksum of a frame on a channel that has no integrity of its own.
std::uint32_t frame_checksum(base::Bytes head, base::Bytes body);

// One frame as it travels: header, head, body.
std::vector<std::uint8_t> frame_bytes(const Frame& frame, std::uint16_t stream, bool checksum);

}  // namespace volferry::wire
