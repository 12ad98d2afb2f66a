// SPDX-License-Identifier: Apache-2.0
// Pieces stand in one deque in the order they were added: first the started ones, then those that
// wait for a slot or for room under `depth`. A piece is only removed at the front, so that those in
// flight stay where they are in memory.
#include "engine/io/reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/base/check.h"

namespace volferry::io {
namespace {

// Direct reads are rounded up to this: a multiple of every logical block size in use, and what
// slots are aligned to.
constexpr std::size_t kDirectUnit = 4096;

bool is_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

}  // namespace

struct ReadAhead::Impl {
  struct Piece {
    std::uint64_t offset = 0;
    std::size_t length = 0;
    base::Buffer buffer;
    IoRequest request;
    Result<std::size_t> outcome = 0;
    bool finished = false;
  };

  Impl(IoQueue& queue_in, base::BufferPool& pool_in, int fd_in, unsigned depth_in)
      : queue(queue_in), pool(pool_in), fd(fd_in), depth(depth_in), direct(is_direct(fd_in)) {}

  // Starts waiting pieces while there is room and slots are free.
  void start_more() {
    while (started < pieces.size() && started < depth) {
      base::Buffer buffer = pool.try_acquire();
      if (buffer.data() == nullptr) return;
      start(pieces[started], std::move(buffer));
    }
  }

  void start(Piece& piece, base::Buffer buffer) {
    piece.buffer = std::move(buffer);
    ++started;
    ++reading;
    std::size_t length = piece.length;
    if (direct) length = (length + kDirectUnit - 1) / kDirectUnit * kDirectUnit;
    piece.request = IoRequest{IoOp::kRead,
                              fd,
                              piece.offset,
                              piece.buffer.data(),
                              std::min(length, piece.buffer.capacity()),
                              piece.buffer.slot(),
                              [this, &piece](IoRequest&, Result<std::size_t> outcome) {
                                piece.outcome = std::move(outcome);
                                piece.finished = true;
                                --reading;
                              }};
    queue.submit(piece.request);
  }

  // Starts the front piece, waiting for a slot. While this thread's own requests hold slots, only
  // running their callbacks can free them; after that it takes another thread.
  Status start_front() {
    for (;;) {
      base::Buffer buffer = pool.try_acquire();
      if (buffer.data() == nullptr && queue.in_flight() == 0) {
        VF_ASSIGN(buffer, pool.acquire());
      }
      if (buffer.data() != nullptr) {
        start(pieces.front(), std::move(buffer));
        return {};
      }
      queue.wait(1);
    }
  }

  IoQueue& queue;
  base::BufferPool& pool;
  const int fd;
  const std::size_t depth;
  const bool direct;
  std::deque<Piece> pieces;
  std::size_t started = 0;  // so many at the front have a slot
  std::size_t reading = 0;  // of these, not finished
};

ReadAhead::ReadAhead(IoQueue& queue, base::BufferPool& pool, int fd, unsigned depth)
    : impl_(std::make_unique<Impl>(queue, pool, fd, std::max(depth, 1U))) {}

ReadAhead::~ReadAhead() {
  while (impl_->reading > 0) impl_->queue.wait(1);
}

void ReadAhead::add(std::uint64_t offset, std::size_t length) {
  VF_CHECK(length <= impl_->pool.slot_bytes(), "a piece larger than a slot");
  auto& piece = impl_->pieces.emplace_back();
  piece.offset = offset;
  piece.length = length;
  impl_->start_more();
}

Result<std::optional<ReadPiece>> ReadAhead::next() {
  Impl& reader = *impl_;
  if (reader.pieces.empty()) return std::nullopt;
  reader.start_more();
  if (reader.started == 0) VF_TRY(reader.start_front());
  while (!reader.pieces.front().finished) reader.queue.wait(1);

  Impl::Piece& front = reader.pieces.front();
  ReadPiece result{front.offset, std::move(front.buffer)};
  Result<std::size_t> outcome = std::move(front.outcome);
  const std::size_t asked = front.length;
  reader.pieces.pop_front();
  --reader.started;
  if (!outcome) {
    result.data = {};
    reader.start_more();
    return std::unexpected(std::move(outcome).error());
  }
  result.data.set_size(std::min(*outcome, asked));
  reader.start_more();
  return result;
}

std::size_t ReadAhead::pending() const { return impl_->pieces.size(); }

}  // namespace volferry::io
