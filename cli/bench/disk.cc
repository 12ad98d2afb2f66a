// SPDX-License-Identifier: Apache-2.0
// Reading and writing one large file through the engine's queue, beside plain system calls on the
// same file system. The file has no name, so nothing can be left behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <thread>

#include "cli/bench/measure.h"
#include "cli/escape.h"

#include "engine/base/buffer.h"
#include "engine/base/unique_fd.h"
#include "engine/io/file.h"
#include "engine/io/queue.h"

namespace volferry::cli::bench {

namespace {

constexpr std::uint64_t kFileBytes = 256u << 20;
constexpr std::size_t kPiece = 1u << 20;
constexpr unsigned kDepth = 16;
// Plain direct I/O wants few, large requests; two threads keep the device busy.
constexpr std::size_t kDirectPiece = 4u << 20;
constexpr unsigned kDirectThreads = 4;

Result<base::UniqueFd> unnamed_file(const std::string& directory) {
  base::UniqueFd file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string name = directory + "/.volferry-bench-XXXXXX";
  base::UniqueFd named(mkostemp(name.data(), O_CLOEXEC));
  if (!named) return fail_sys(fmt::format("create a file in {}", escape_bytes(directory)));
  unlink(name.c_str());
  return named;
}

// One pass of the engine's queue over the whole file.
class QueuePass {
 public:
  QueuePass(io::IoQueue& queue, base::BufferPool& pool) : queue_(queue) {
    for (unsigned i = 0; i < kDepth; ++i) {
      Slot& slot = slots_.emplace_back();
      slot.buffer = pool.try_acquire();
    }
  }

  // Bytes moved, or 0 after an error or a stop.
  std::uint64_t run(const Context& context, int fd, io::IoOp op) {
    failed_ = false;
    for (std::uint64_t offset = 0; offset < kFileBytes && !failed_; offset += kPiece) {
      if (context.stopped()) failed_ = true;
      submit(free_slot(), fd, op, offset);
    }
    queue_.drain();
    return failed_ ? 0 : kFileBytes;
  }

 private:
  struct Slot {
    io::IoRequest request;
    base::Buffer buffer;
    bool busy = false;
  };

  Slot& free_slot() {
    for (;;) {
      for (Slot& slot : slots_)
        if (!slot.busy) return slot;
      queue_.wait(1);
    }
  }

  void submit(Slot& slot, int fd, io::IoOp op, std::uint64_t offset) {
    slot.busy = true;
    slot.request.op = op;
    slot.request.fd = fd;
    slot.request.offset = offset;
    slot.request.data = slot.buffer.data();
    slot.request.length = kPiece;
    slot.request.slot = slot.buffer.slot();
    slot.request.done = [this, &slot](io::IoRequest&, Result<std::size_t> moved) {
      slot.busy = false;
      if (!moved || *moved != kPiece) failed_ = true;
    };
    queue_.submit(slot.request);
  }

  io::IoQueue& queue_;
  std::deque<Slot> slots_;
  bool failed_ = false;
};

struct AlignedFree {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::uint8_t, AlignedFree>;
AlignedBuffer aligned_buffer(std::size_t bytes) {
  auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(4096, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  const std::vector<std::uint8_t> content = random_data(bytes, 5);
  std::copy(content.begin(), content.end(), memory);
  return AlignedBuffer(memory);
}

// Plain pread or pwrite over the whole file, split among threads.
std::uint64_t plain_pass(int fd, bool writing, std::size_t piece, unsigned threads,
                         std::vector<AlignedBuffer>& buffers) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&](std::uint8_t* buffer) {
    for (std::uint64_t at = next.fetch_add(piece); at < kFileBytes && !failed;
         at = next.fetch_add(piece)) {
      const auto offset = static_cast<off_t>(at);
      const ssize_t moved =
          writing ? pwrite(fd, buffer, piece, offset) : pread(fd, buffer, piece, offset);
      if (moved != static_cast<ssize_t>(piece)) failed = true;
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work, buffers[i].get());
  work(buffers[0].get());
  helpers.clear();
  return failed ? 0 : kFileBytes;
}

class DiskBench {
 public:
  DiskBench(Context& context, base::BufferPool& pool, io::IoQueue& queue)
      : context_(context), pass_(queue, pool) {
    for (unsigned i = 0; i < kDirectThreads; ++i) buffers_.push_back(aligned_buffer(kDirectPiece));
  }

  void read_cached(int fd) {
    if (pass_.run(context_, fd, io::IoOp::kWrite) == 0)
      return missing("read, cached", "cannot write");
    add(
        "read, cached", [&] { return pass_.run(context_, fd, io::IoOp::kRead); }, "plain pread",
        [&] { return plain_pass(fd, false, kPiece, 1, buffers_); });
  }

  void read_direct(int fd) {
    if (fsync(fd) != 0 || !io::set_direct(fd, true)) return missing("read, direct", kNoDirect);
    add(
        "read, direct", [&] { return pass_.run(context_, fd, io::IoOp::kRead); },
        "plain pread, 4 threads",
        [&] { return plain_pass(fd, false, kDirectPiece, kDirectThreads, buffers_); });
    io::set_direct(fd, false);
  }

  // To a new file each time, into the page cache only.
  void write_buffered() {
    add("write, buffered", fresh([&](int fd) { return pass_.run(context_, fd, io::IoOp::kWrite); }),
        "plain pwrite", fresh([&](int fd) { return plain_pass(fd, true, kPiece, 1, buffers_); }));
  }

  // To a new file each time, on stable storage at the end.
  void write_direct() {
    const auto durable = [&](int fd, const std::function<std::uint64_t()>& write) -> std::uint64_t {
      if (!io::set_direct(fd, true) || posix_fallocate(fd, 0, kFileBytes) != 0) return 0;
      const std::uint64_t bytes = write();
      return fsync(fd) == 0 ? bytes : 0;
    };
    add("write, direct, durable", fresh([&](int fd) {
          return durable(fd, [&] { return pass_.run(context_, fd, io::IoOp::kWrite); });
        }),
        "plain pwrite, 4 threads", fresh([&](int fd) {
          return durable(
              fd, [&] { return plain_pass(fd, true, kDirectPiece, kDirectThreads, buffers_); });
        }));
  }

 private:
  using Step = std::function<std::uint64_t()>;
  static constexpr const char* kNoDirect = "this file system has no direct I/O";

  Step fresh(std::function<std::uint64_t(int)> step) {
    return [this, step = std::move(step)]() -> std::uint64_t {
      const auto file = unnamed_file(context_.directory);
      return file ? step(file->get()) : 0;
    };
  }

  void missing(std::string name, std::string why) {
    context_.rows.push_back({.name = std::move(name), .unit = "bytes", .note = std::move(why)});
  }

  void add(std::string name, const Step& engine, std::string limit_name, const Step& plain) {
    Row row = {.name = std::move(name),
               .unit = "bytes",
               .rate = measure(context_, engine),
               .limit = measure(context_, plain),
               .limit_name = std::move(limit_name)};
    if (row.rate == 0 && !context_.stopped()) row.note = "not possible on this file system";
    context_.rows.push_back(std::move(row));
  }

  Context& context_;
  QueuePass pass_;
  std::vector<AlignedBuffer> buffers_;
};

void fill_pool(base::BufferPool& pool) {
  const std::vector<std::uint8_t> content = random_data(kPiece, 9);
  std::vector<base::Buffer> leases;
  for (unsigned i = 0; i < kDepth; ++i) {
    leases.push_back(pool.try_acquire());
    std::copy(content.begin(), content.end(), leases.back().data());
  }
}

Status run_disk(Context& context) {
  VF_ASSIGN(const io::ProbedBackend probed, io::probe_backend(io::BackendChoice::kAuto));
  VF_ASSIGN(const auto pool, base::BufferPool::create(kDepth, kPiece));
  fill_pool(*pool);
  VF_ASSIGN(const auto queue,
            io::make_io_queue({.backend = probed.backend, .depth = kDepth, .pool = pool.get()}));
  VF_ASSIGN(const base::UniqueFd file, unnamed_file(context.directory));
  context.logger.log(
      base::LogLevel::kInfo,
      fmt::format("bench io={} why={}", io::backend_name(queue->backend()), probed.why));
  DiskBench bench(context, *pool, *queue);
  bench.read_cached(file.get());
  bench.read_direct(file.get());
  bench.write_buffered();
  bench.write_direct();
  return {};
}

}  // namespace

void bench_disk(Context& context) {
  const Status status = run_disk(context);
  if (!status)
    context.rows.push_back(
        {.name = "read and write", .unit = "bytes", .note = status.error().message()});
}

}  // namespace volferry::cli::bench
