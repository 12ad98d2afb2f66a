// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/base/buffer.h"
#include "engine/base/log.h"
#include "engine/io/queue.h"
#include "engine/options.h"
#include "engine/session/workers.h"

namespace volferry::session {

// The machine's part of one session: the I/O backend that works here, and how threads and memory
// are shared out.
struct Runtime {
  io::Backend backend = io::Backend::kThreads;
  unsigned threads = 2;
  // Buffers for reading and building, and for frames that have arrived; together at most half of
  // --memory, which leaves the rest to lists, tables and small frames.
  std::unique_ptr<base::BufferPool> work_pool;
  std::unique_ptr<base::BufferPool> receive_pool;  // remote sessions only
  std::uint64_t data_credit = 0;
  std::uint64_t list_credit = 0;
  std::unique_ptr<Workers> workers;

  // The most bytes of pooled buffers that were in use at once.
  std::uint64_t peak_buffers() const;
  const char* io_name() const { return backend == io::Backend::kThreads ? "threads" : "uring"; }
  // Probes, and starts the workers. kUnsupported where --io uring is refused here; kUsage where
  // --memory is too small.
  static Result<Runtime> create(const SyncOptions& options, bool remote, base::Logger& logger);
};

}  // namespace volferry::session
