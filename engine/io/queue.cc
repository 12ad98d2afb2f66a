// SPDX-License-Identifier: Apache-2.0
#include "engine/io/queue.h"

#include "engine/base/check.h"
#include "engine/io/internal/backends.h"

namespace volferry::io {

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::kUringFixed:
      return "uring-fixed";
    case Backend::kUring:
      return "uring";
    case Backend::kThreads:
      return "threads";
  }
  return "?";
}

Result<std::unique_ptr<IoQueue>> make_io_queue(const IoQueueOptions& options) {
  VF_CHECK(options.depth > 0, "an I/O queue of depth 0");
  switch (options.backend) {
    case Backend::kUringFixed:
      VF_CHECK(options.pool != nullptr, "registered buffers without a pool");
      return internal::make_uring_queue(options);
    case Backend::kUring:
      return internal::make_uring_queue(options);
    case Backend::kThreads:
      return internal::make_thread_queue(options);
  }
  return fail_with(Code::kInternal, "unknown I/O backend");
}

}  // namespace volferry::io
