// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/base/buffer.h"
#include "engine/base/error.h"
#include "engine/io/queue.h"

namespace volferry::io {

struct ReadPiece {
  std::uint64_t offset = 0;
  base::Buffer data;  // size() bytes; less than asked only at the end of the file
};

// Reads pieces of one file ahead through an IoQueue and hands them out in order.
class ReadAhead {
 public:
  // All outlive the reader. At most `depth` pieces are read ahead, each in one slot of `pool`. The
  // first piece may wait for a slot; further ones are only taken while slots are free, so a reader
  // never starves others.
  ReadAhead(IoQueue& queue, base::BufferPool& pool, int fd, unsigned depth);
  ~ReadAhead();  // waits for reads in flight

  // Adds a piece to read: `length` at most the pool's slot size. With direct I/O, offset and slot
  // are aligned by the caller and the length is rounded up here.
  void add(std::uint64_t offset, std::size_t length);
  // The next piece in the order added; nothing when none is left. Errors name the offset.
  Result<std::optional<ReadPiece>> next();
  std::size_t pending() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace volferry::io
