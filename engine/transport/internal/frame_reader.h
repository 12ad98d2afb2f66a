// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/transport/internal/link.h"
#include "engine/transport/wire/frame.h"

namespace volferry::transport {

// Takes frames off a link. Small reads go through a buffer; the bulk of a body goes straight into
// its destination.
class FrameReader {
 public:
  // `link` and `pool` (may be null: bodies then live on the heap) outlive the reader. With
  // `buffered` false it never takes a byte past the frame it was asked for, as the handshake needs.
  FrameReader(Link& link, base::BufferPool* pool, bool buffered);

  // Called with each header before memory is taken for it; an error ends the reading.
  using Admit = std::function<Status(const wire::FrameHeader&)>;
  using WaitFor = std::function<Wait()>;  // asked before each read

  // The next frame, or nothing at the end of the stream. kProtocol for a frame past its limits or
  // with a wrong checksum, kConnectionLost where the stream ends inside a frame; else as
  // Link::read.
  Result<std::optional<wire::Frame>> next(std::size_t max_head, const Admit& admit,
                                          const WaitFor& wait);

 private:
  // False where the stream ended before the first byte.
  Result<bool> fill(base::MutBytes out, const WaitFor& wait);
  std::size_t take_buffered(base::MutBytes out);
  base::Buffer body_buffer(std::size_t length);

  Link& link_;
  base::BufferPool* const pool_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace volferry::transport
