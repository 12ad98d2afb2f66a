// SPDX-License-Identifier: Apache-2.0
// The queue's backends at several depths: sequential transfers over a file of 256 MiB in the
// working directory, read and written, through the page cache and direct. To compare: the plain
// pread and pwrite loops at the end.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/unique_fd.h"
#include "engine/io/file.h"
#include "engine/io/queue.h"
#include "engine/io/reader.h"

namespace {

using volferry::Result;
using volferry::base::Buffer;
using volferry::base::BufferPool;
using volferry::base::UniqueFd;
using volferry::io::Backend;
using volferry::io::IoOp;
using volferry::io::IoQueue;
using volferry::io::IoRequest;

constexpr std::size_t kFileBytes = std::size_t{256} << 20;

UniqueFd make_file(int flags) {
  std::string path = "io_bench_XXXXXX";
  const UniqueFd buffered(::mkstemp(path.data()));
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags));
  ::unlink(path.c_str());
  std::vector<std::uint8_t> block(1 << 20);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::uint8_t>(i * 31);
  for (std::size_t at = 0; at < kFileBytes; at += block.size()) {
    if (!volferry::io::write_full(buffered.get(), block.data(), block.size(), at)) std::abort();
  }
  if (::fsync(buffered.get()) != 0) std::abort();
  if ((flags & O_DIRECT) != 0) ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return fd;
}

// One file for each kind of access, without a name any more: a direct transfer would throw out what
// a buffered one has cached.
int data_file(bool direct) {
  static const UniqueFd kBuffered = make_file(0);
  static const UniqueFd kDirect = make_file(O_DIRECT);
  return direct ? kDirect.get() : kBuffered.get();
}

// Keeps `depth` requests in flight, each resubmitted by its callback, until the file is done.
class Stream {
 public:
  Stream(IoQueue& queue, BufferPool& pool, IoOp op, int fd, unsigned depth)
      : queue_(queue), buffers_(depth), requests_(depth) {
    for (unsigned i = 0; i < depth; ++i) {
      buffers_[i] = pool.try_acquire();
      requests_[i] = {.op = op,
                      .fd = fd,
                      .data = buffers_[i].data(),
                      .length = pool.slot_bytes(),
                      .slot = buffers_[i].slot(),
                      .done = [this](IoRequest& request, Result<std::size_t> outcome) {
                        if (!outcome) failed_ = true;
                        next(request);
                      }};
      // Every page exists before the clock runs.
      std::memset(buffers_[i].data(), 1, pool.slot_bytes());
    }
  }

  bool run() {
    offset_ = 0;
    for (IoRequest& request : requests_) next(request);
    queue_.drain();
    return !failed_;
  }

 private:
  void next(IoRequest& request) {
    if (offset_ >= kFileBytes) return;
    request.offset = offset_;
    offset_ += request.length;
    queue_.submit(request);
  }

  IoQueue& queue_;
  std::vector<Buffer> buffers_;
  std::vector<IoRequest> requests_;
  std::uint64_t offset_ = 0;
  bool failed_ = false;
};

// Arguments: backend, operation, direct, depth, KiB a request.
void BM_Queue(benchmark::State& state) {
  const auto backend = static_cast<Backend>(state.range(0));
  const auto op = static_cast<IoOp>(state.range(1));
  const bool direct = state.range(2) != 0;
  const auto depth = static_cast<unsigned>(state.range(3));
  const auto bytes = static_cast<std::size_t>(state.range(4)) * 1024;
  auto pool = BufferPool::create(depth, bytes);
  auto queue = volferry::io::make_io_queue(
      {.backend = backend, .depth = depth, .pool = pool->get(), .threads = 2});
  if (!queue) {
    state.SkipWithError(queue.error().message().c_str());
    return;
  }
  const int fd = data_file(direct);
  Stream stream(**queue, **pool, op, fd, depth);
  for ([[maybe_unused]] auto _ : state) {
    if (!stream.run()) state.SkipWithError("a transfer failed");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kFileBytes));
  state.SetLabel(std::string(backend_name((*queue)->backend())) +
                 (op == IoOp::kRead ? " read" : " write") + (direct ? " direct" : " buffered"));
}
BENCHMARK(BM_Queue)
    ->ArgNames({"backend", "op", "direct", "depth", "KiB"})
    ->ArgsProduct({{0, 1, 2}, {0, 1}, {0, 1}, {1, 4, 16}, {1024}})
    ->ArgsProduct({{0, 1, 2}, {0, 1}, {0, 1}, {16}, {64}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

// Arguments: backend, direct. Depth 16, pieces of 256 KiB.
void BM_ReadAhead(benchmark::State& state) {
  const auto backend = static_cast<Backend>(state.range(0));
  const int fd = data_file(state.range(1) != 0);
  constexpr std::size_t kPiece = 256 * 1024;
  auto pool = BufferPool::create(32, kPiece);
  auto queue = volferry::io::make_io_queue(
      {.backend = backend, .depth = 16, .pool = pool->get(), .threads = 2});
  if (!queue) {
    state.SkipWithError(queue.error().message().c_str());
    return;
  }
  for ([[maybe_unused]] auto _ : state) {
    volferry::io::ReadAhead reader(**queue, **pool, fd, 16);
    for (std::uint64_t at = 0; at < kFileBytes; at += kPiece) reader.add(at, kPiece);
    for (;;) {
      auto piece = reader.next();
      if (!piece) state.SkipWithError(piece.error().message().c_str());
      if (!piece || !*piece) break;
      benchmark::DoNotOptimize((*piece)->data.data());
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kFileBytes));
  state.SetLabel(std::string(backend_name(backend)) +
                 (state.range(1) != 0 ? " direct" : " buffered"));
}
BENCHMARK(BM_ReadAhead)
    ->ArgNames({"backend", "direct"})
    ->ArgsProduct({{0, 1, 2}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

// The floor: one blocking call after the other. Arguments: operation, direct.
void BM_Blocking(benchmark::State& state) {
  const bool read = state.range(0) == 0;
  const int fd = data_file(state.range(1) != 0);
  constexpr std::size_t kBytes = 1 << 20;
  auto pool = BufferPool::create(1, kBytes);
  Buffer buffer = (*pool)->try_acquire();
  std::memset(buffer.data(), 1, kBytes);
  for ([[maybe_unused]] auto _ : state) {
    for (std::uint64_t at = 0; at < kFileBytes; at += kBytes) {
      const bool done = read ? volferry::io::read_full(fd, buffer.data(), kBytes, at).has_value()
                             : volferry::io::write_full(fd, buffer.data(), kBytes, at).has_value();
      if (!done) state.SkipWithError("a transfer failed");
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kFileBytes));
  state.SetLabel(std::string(read ? "read" : "write") +
                 (state.range(1) != 0 ? " direct" : " buffered"));
}
BENCHMARK(BM_Blocking)
    ->ArgNames({"op", "direct"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
