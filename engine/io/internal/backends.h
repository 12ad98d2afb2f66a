// SPDX-License-Identifier: Apache-2.0
// The factories behind `make_io_queue`, one for each kind of backend.
#pragma once

#include <memory>

#include "engine/base/error.h"
#include "engine/io/queue.h"

namespace volferry::io::internal {

// io_uring; with `options.backend == kUringFixed` over registered buffers, and over plain ones
// where registering is refused. kUnsupported where the kernel or a seccomp profile refuses
// io_uring, kSystem for other failures.
Result<std::unique_ptr<IoQueue>> make_uring_queue(const IoQueueOptions& options);

// A pool of `options.threads` threads with pread and pwrite. kSystem where no thread can be
// started.
Result<std::unique_ptr<IoQueue>> make_thread_queue(const IoQueueOptions& options);

}  // namespace volferry::io::internal
