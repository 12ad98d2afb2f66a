// SPDX-License-Identifier: Apache-2.0
#include "engine/session/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "engine/transport/wire/limits.h"

namespace volferry::session {

namespace {
constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kMinMemory = 32 * kMiB;
constexpr unsigned kMaxThreads = 8;

io::BackendChoice choice_of(IoChoice io) {
  switch (io) {
    case IoChoice::kUring:
      return io::BackendChoice::kUring;
    case IoChoice::kThreads:
      return io::BackendChoice::kThreads;
    case IoChoice::kAuto:
      break;
  }
  return io::BackendChoice::kAuto;
}
}  // namespace

std::uint64_t Runtime::peak_buffers() const {
  std::uint64_t bytes = 0;
  for (const auto* pool : {work_pool.get(), receive_pool.get()}) {
    if (pool != nullptr) bytes += pool->peak_leased() * pool->slot_bytes();
  }
  return bytes;
}

Result<Runtime> Runtime::create(const SyncOptions& options, bool remote, base::Logger& logger) {
  if (options.memory_bytes < kMinMemory) {
    return fail_with(Code::kUsage, "--memory is below what one session needs; give at least 32Mi");
  }
  Runtime runtime;
  VF_ASSIGN(const io::ProbedBackend probed, io::probe_backend(choice_of(options.io)));
  runtime.backend = probed.backend;
  const bool fallback = options.io == IoChoice::kAuto && probed.backend == io::Backend::kThreads;
  logger.log(
      fallback ? base::LogLevel::kWarn : base::LogLevel::kInfo,
      fmt::format("io backend={} reason=\"{}\"", io::backend_name(probed.backend), probed.why));
  // At least two, so that reading and writing overlap on one core too.
  runtime.threads = options.threads != 0
                        ? options.threads
                        : std::clamp(std::thread::hardware_concurrency(), 2u, kMaxThreads);
  const std::uint64_t share = options.memory_bytes / 8;
  const std::uint64_t work_slots =
      std::clamp<std::uint64_t>(share / kMiB, runtime.threads + 2, 16 + 8 * runtime.threads);
  VF_ASSIGN(runtime.work_pool,
            base::BufferPool::create(static_cast<unsigned>(work_slots), wire::kMaxBody));
  if (remote) {
    runtime.data_credit = std::clamp<std::uint64_t>(share, 4 * kMiB, 64 * kMiB) / kMiB * kMiB;
    runtime.list_credit = 4 * kMiB;
    // Some more than the credit counts, so that compressed and short bodies find slots too.
    const std::uint64_t credit_slots = runtime.data_credit / kMiB;
    const std::uint64_t slots = credit_slots + std::min<std::uint64_t>(16, credit_slots) +
                                2 * std::max(1u, options.streams);
    VF_ASSIGN(runtime.receive_pool,
              base::BufferPool::create(static_cast<unsigned>(slots), wire::kMaxBody));
  }
  Workers::Options workers;
  workers.threads = runtime.threads;
  workers.backend = runtime.backend;
  workers.pool = runtime.work_pool.get();
  VF_ASSIGN(runtime.workers, Workers::create(workers));
  logger.log(base::LogLevel::kInfo,
             fmt::format("session threads={} buffers={} credit={}", runtime.threads,
                         runtime.work_pool->slots() * wire::kMaxBody, runtime.data_credit));
  return runtime;
}

}  // namespace volferry::session
