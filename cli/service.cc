// SPDX-License-Identifier: Apache-2.0
#include "cli/service.h"

#include <algorithm>

#include "engine/transport/wire/limits.h"

namespace volferry::cli {

namespace {

constexpr unsigned kMaxSessionStreams = 16;

Result<ReceiveBuffers> make_receive_buffers(std::uint64_t memory_bytes, unsigned streams) {
  // An eighth of the memory, as the engine has it for the client's end.
  ReceiveBuffers buffers;
  buffers.credit =
      std::clamp<std::uint64_t>(memory_bytes / 8, 4 * wire::kMaxBody, 64 * wire::kMaxBody);
  const auto slots = static_cast<unsigned>(buffers.credit / wire::kMaxBody) + streams;
  VF_ASSIGN(buffers.pool, base::BufferPool::create(slots, wire::kMaxBody));
  return buffers;
}

}  // namespace

Result<Service> start_service(transport::ServerOptions options, const SyncOptions& limits,
                              base::Logger& logger) {
  const unsigned streams = limits.streams != 0 ? limits.streams : kMaxSessionStreams;
  Service service;
  VF_ASSIGN(service.buffers, make_receive_buffers(limits.memory_bytes, streams));
  options.channel.logger = &logger;
  options.channel.streams = streams;
  options.channel.bandwidth_limit = limits.bandwidth_limit;
  options.channel.idle_timeout = limits.timeout;
  options.channel.identity = limits.identity;
  options.channel.data_credit = service.buffers.credit;
  options.channel.receive_pool = service.buffers.pool.get();
  VF_ASSIGN(service.server, transport::Server::create(options));
  return service;
}

}  // namespace volferry::cli
