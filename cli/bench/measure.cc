// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/measure.h"

#include <algorithm>
#include <cstring>

namespace volferry::cli::bench {

namespace {
// Larger than any cache that a core has to itself.
constexpr std::size_t kMemoryBytes = 64u << 20;

// Keeps the compiler from dropping a computation whose result nobody reads.
void keep(std::uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }
}  // namespace

double measure(const Context& context, const std::function<std::uint64_t()>& step) {
  using SteadyClock = std::chrono::steady_clock;
  if (context.stopped() || step() == 0) return 0;
  const auto start = SteadyClock::now();
  std::uint64_t amount = 0;
  do {
    const std::uint64_t done = context.stopped() ? 0 : step();
    if (done == 0) return 0;
    amount += done;
  } while (SteadyClock::now() - start < context.duration);
  const std::chrono::duration<double> elapsed = SteadyClock::now() - start;
  return static_cast<double>(amount) / elapsed.count();
}

std::vector<std::uint8_t> random_data(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::uint8_t> data(bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (std::size_t at = 0; at < bytes; at += 8) {
    // xorshift64* (Vigna 2016).
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const std::uint64_t word = state * 0x2545f4914f6cdd1dull;
    std::memcpy(data.data() + at, &word, std::min<std::size_t>(8, bytes - at));
  }
  return data;
}

void measure_memory_limits(Context& context) {
  const std::vector<std::uint8_t> source = random_data(kMemoryBytes, 1);
  std::vector<std::uint8_t> target(kMemoryBytes);
  context.memory_copy = measure(context, [&] {
    std::memcpy(target.data(), source.data(), source.size());
    keep(target[kMemoryBytes / 2]);
    return source.size();
  });
  // The C library's search for a byte that is not there: the fastest way to look at every byte that
  // is at hand.
  std::memset(target.data(), 0, target.size());
  context.memory_read = measure(context, [&] {
    keep(std::memchr(target.data(), 1, target.size()) != nullptr);
    return target.size();
  });
  context.rows.push_back({.name = "memory copy, 1 thread",
                          .unit = "bytes",
                          .rate = context.memory_copy,
                          .limit = context.memory_read,
                          .limit_name = "memory read"});
}

}  // namespace volferry::cli::bench
