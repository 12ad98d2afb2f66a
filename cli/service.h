// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/buffer.h"
#include "engine/sync.h"

namespace volferry::cli {

// Where received bytes land. Sessions share it; what it cannot hold goes to the heap, within the
// credit of each session.
struct ReceiveBuffers {
  std::uint64_t credit = 0;
  std::unique_ptr<base::BufferPool> pool;
};

// A listening server and what it needs for as long as it lives.
struct Service {
  ReceiveBuffers buffers;
  std::unique_ptr<transport::Server> server;  // ends before the buffers
};

// `options`: where to listen, and the keys; the rest is filled in from `limits`, its identity tuple
// included. The logger outlives the service.
Result<Service> start_service(transport::ServerOptions options, const SyncOptions& limits,
                              base::Logger& logger);

}  // namespace volferry::cli
