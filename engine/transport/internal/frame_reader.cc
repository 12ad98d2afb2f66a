// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/frame_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace volferry::transport {

namespace {
// Two TLS records. Larger gains nothing for small frames and makes large ones copy more.
constexpr std::size_t kReadBuffer = 32 << 10;
}  // namespace

FrameReader::FrameReader(Link& link, base::BufferPool* pool, bool buffered)
    : link_(link), pool_(pool), buffer_(buffered ? kReadBuffer : 0) {}

std::size_t FrameReader::take_buffered(base::MutBytes out) {
  const std::size_t taken = std::min(out.size(), end_ - begin_);
  if (taken == 0) return 0;
  std::memcpy(out.data(), buffer_.data() + begin_, taken);
  begin_ += taken;
  return taken;
}

Result<bool> FrameReader::fill(base::MutBytes out, const WaitFor& wait) {
  std::size_t done = take_buffered(out);
  while (done < out.size()) {
    const base::MutBytes rest = out.subspan(done);
    const bool direct = rest.size() >= buffer_.size();
    Result<std::size_t> got = link_.read(direct ? rest : base::MutBytes(buffer_), wait());
    if (!got) return std::unexpected(std::move(got).error());
    if (*got == 0 && done == 0) return false;
    if (*got == 0) return fail_with(Code::kConnectionLost, "the peer closed inside a frame");
    if (direct) {
      done += *got;
    } else {
      begin_ = 0;
      end_ = *got;
      done += take_buffered(rest);
    }
  }
  return true;
}

// A pool too small for the credit that was granted costs heap memory, never a stall.
base::Buffer FrameReader::body_buffer(std::size_t length) {
  if (length > wire::kHeapBodyBytes && pool_ != nullptr && pool_->slot_bytes() >= length) {
    base::Buffer slot = pool_->try_acquire();
    if (slot.data() != nullptr) return slot;
  }
  return base::Buffer::heap(length);
}

Result<std::optional<wire::Frame>> FrameReader::next(std::size_t max_head, const Admit& admit,
                                                     const WaitFor& wait) {
  std::array<std::uint8_t, wire::kFrameHeaderBytes> raw{};
  VF_ASSIGN(const bool more, fill(raw, wait));
  if (!more) return std::optional<wire::Frame>{};
  VF_ASSIGN(const wire::FrameHeader header, wire::decode_header(raw, max_head));
  VF_TRY(admit(header));

  wire::Frame frame;
  frame.type = static_cast<wire::MessageType>(header.type);
  frame.flags = header.flags;
  const auto cut = [] {
    return fail_with(Code::kConnectionLost, "the peer closed inside a frame");
  };
  if (header.head_length > 0) {
    frame.head.resize(header.head_length);
    VF_ASSIGN(const bool whole, fill(frame.head, wait));
    if (!whole) return cut();
  }
  if (header.body_length > 0) {
    frame.body = body_buffer(header.body_length);
    VF_ASSIGN(const bool whole, fill(frame.body.space().first(header.body_length), wait));
    if (!whole) return cut();
    frame.body.set_size(header.body_length);
  }
  if (!link_.has_integrity() &&
      header.checksum != wire::frame_checksum(frame.head, frame.body.bytes())) {
    return fail_with(Code::kProtocol, "a frame arrived damaged (checksum)");
  }
  return std::optional<wire::Frame>(std::move(frame));
}

}  // namespace volferry::transport
