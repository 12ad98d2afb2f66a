// SPDX-License-Identifier: Apache-2.0
// Bulk file I/O: one queue per thread, requests with a callback at their completion. Three
// backends: io_uring with registered buffers, io_uring with plain buffers, and a small pool of
// threads with pread and pwrite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/base/buffer.h"
#include "engine/base/error.h"

namespace volferry::io {

enum class Backend : std::uint8_t { kUringFixed, kUring, kThreads };
std::string_view backend_name(Backend backend);  // "uring-fixed", "uring", "threads"

enum class IoOp : std::uint8_t { kRead, kWrite, kSync };

// One operation. The caller owns it and keeps it and its memory in place until `done` has been
// called, exactly once.
struct IoRequest {
  IoOp op = IoOp::kRead;
  int fd = -1;
  std::uint64_t offset = 0;
  std::uint8_t* data = nullptr;  // inside `buffer_pool`'s region where slot >= 0
  std::size_t length = 0;
  int slot = -1;  // pool slot (Buffer::slot), or -1 for other memory
  // Called on the queue's own thread, inside submit, wait or drain. `transferred`: bytes; less than
  // `length` only for a read that met the end of the file. Short transfers and EINTR are repeated
  // by the queue, never seen here. It may submit (this request too) and, as its last act, destroy
  // the request.
  std::function<void(IoRequest&, Result<std::size_t> transferred)> done;
};

// Not thread-safe: made, used and destroyed by one thread. The destructor waits for what is in
// flight.
class IoQueue {
 public:
  virtual ~IoQueue() = default;
  IoQueue() = default;
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;

  // Starts the request; small ones may stay queued until the next `wait`. Where `depth` requests
  // are in flight already, first waits for one to complete; from within a callback the request
  // waits its turn instead, counted by `in_flight`.
  virtual void submit(IoRequest& request) = 0;
  // Hands over what is queued, and runs callbacks of what has completed, at least `min_complete` of
  // them (or all that are in flight, if fewer). Returns how many ran.
  virtual unsigned wait(unsigned min_complete) = 0;
  virtual unsigned in_flight() const = 0;
  virtual unsigned depth() const = 0;
  virtual Backend backend() const = 0;
  void drain() {
    while (in_flight() > 0) wait(in_flight());
  }
};

struct IoQueueOptions {
  Backend backend = Backend::kThreads;
  unsigned depth = 16;
  const base::BufferPool* pool =
      nullptr;           // registered by kUringFixed; required there. Outlives the queue
  unsigned threads = 2;  // kThreads: workers of this queue
};
Result<std::unique_ptr<IoQueue>> make_io_queue(const IoQueueOptions& options);

enum class BackendChoice : std::uint8_t { kAuto, kUring, kThreads };
struct ProbedBackend {
  Backend backend = Backend::kThreads;
  std::string why;  // one line for the log: what was probed and found
};
// The best backend that works here. Tried in a forked child, because a seccomp profile may answer
// io_uring_setup with EPERM or ENOSYS or kill the caller. Never fails for kAuto; kUring:
// kUnsupported where refused. Call before threads are started where possible.
Result<ProbedBackend> probe_backend(BackendChoice choice);

}  // namespace volferry::io
