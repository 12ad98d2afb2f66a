// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/frame.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/check.h"

namespace volferry::wire {

namespace {

template <typename T>
void put(base::MutBytes out, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

}  // namespace

std::uint64_t Frame::charge() const {
  const std::size_t body_charge = body.size() > kHeapBodyBytes ? kMaxBody : body.size();
  return kFrameCharge + head.size() + body_charge;
}

void encode_header(const FrameHeader& header, base::MutBytes out) {
  VF_CHECK(out.size() >= kFrameHeaderBytes, "room for a frame header");
  out[0] = header.type;
  out[1] = header.flags;
  put(out, 2, header.stream);
  put(out, 4, header.head_length);
  put(out, 8, header.body_length);
  put(out, 12, header.checksum);
}

namespace {

// Greetings of programs that a peer may run by mistake; none has the lengths of a frame. VolSync's
// own mover bears the same key as the one that takes its place.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kGreetings = {
    {{"@RSYNCD:", "rsync"}, {"BSNC0002", "diskrsync"}}};

Status no_stranger(base::Bytes header) {
  for (const auto& [greeting, program] : kGreetings) {
    if (!std::equal(greeting.begin(), greeting.end(), header.begin())) continue;
    return fail_with(Code::kProtocol, "the peer speaks " + std::string(program) +
                                          " and not volferry's protocol; where it is VolSync's "
                                          "own mover, give both ends volferry's image");
  }
  return {};
}

}  // namespace

Result<FrameHeader> decode_header(base::Bytes bytes, std::size_t max_head) {
  base::ByteReader in(bytes);
  FrameHeader header;
  header.type = in.u8();
  header.flags = in.u8();
  header.stream = in.u16();
  header.head_length = in.u32();
  header.body_length = in.u32();
  header.checksum = in.u32();
  if (!in.ok()) return fail_with(Code::kProtocol, "frame header cut short");
  const bool fits = header.head_length <= max_head && header.body_length <= kMaxBody;
  if (!fits) VF_TRY(no_stranger(bytes));
  if (header.head_length > max_head) {
    return fail_with(Code::kProtocol, "frame head of " + std::to_string(header.head_length) +
                                          " bytes, at most " + std::to_string(max_head));
  }
  if (header.body_length > kMaxBody) {
    return fail_with(Code::kProtocol, "frame body of " + std::to_string(header.body_length) +
                                          " bytes, at most " + std::to_string(kMaxBody));
  }
  return header;
}

std::uint32_t frame_checksum(base::Bytes head, base::Bytes body) {
  if (body.empty()) return static_cast<std::uint32_t>(XXH64(head.data(), head.size(), 0));
  XXH64_state_t* state = XXH64_createState();
  VF_CHECK(state != nullptr, "out of memory");
  XXH64_reset(state, 0);
  XXH64_update(state, head.data(), head.size());
  XXH64_update(state, body.data(), body.size());
  const XXH64_hash_t hash = XXH64_digest(state);
  XXH64_freeState(state);
  return static_cast<std::uint32_t>(hash);
}

std::vector<std::uint8_t> frame_bytes(const Frame& frame, std::uint16_t stream, bool checksum) {
  const base::Bytes head(frame.head);
  FrameHeader header{static_cast<std::uint8_t>(frame.type),
                     frame.flags,
                     stream,
                     static_cast<std::uint32_t>(head.size()),
                     static_cast<std::uint32_t>(frame.body.size()),
                     0};
  if (checksum) header.checksum = frame_checksum(head, frame.body.bytes());
  std::vector<std::uint8_t> out(kFrameHeaderBytes + head.size() + frame.body.size());
  encode_header(header, out);
  auto next = std::copy(head.begin(), head.end(), out.begin() + kFrameHeaderBytes);
  std::copy_n(frame.body.data(), frame.body.size(), next);
  return out;
}

}  // namespace volferry::wire
