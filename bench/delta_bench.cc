// SPDX-License-Identifier: Apache-2.0
// The hot loops of engine/delta in bytes of source a second, beside memcpy. Inputs are seeded and
// larger than the caches, except where "cached" is in the name.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "engine/delta/aligned.h"
#include "engine/delta/internal/xxh3.h"
#include "engine/delta/rolling.h"
#include "engine/delta/strong_hash.h"
#include "engine/delta/zero.h"

namespace volferry::delta {
namespace {

using Content = std::vector<std::uint8_t>;

constexpr std::size_t kBig = std::size_t{256} << 20;
constexpr std::size_t kSource = std::size_t{32} << 20;
constexpr std::uint32_t kRollingBlock = 8192;

Content random_content(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Content content(size);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(content.data() + i, &word, 8);
  }
  return content;
}

StrongHash make_hash(HashKind kind = HashKind::kXxh3) {
  return *StrongHash::create(kind, random_content(StrongHash::kSecretBytes, 1));
}

void count_bytes(benchmark::State& state, std::size_t per_iteration) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * per_iteration));
}

void copy_memory(benchmark::State& state) {
  const Content from = random_content(kBig, 2);
  Content to(kBig);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBig);
    benchmark::ClobberMemory();
  }
  count_bytes(state, kBig);
}
BENCHMARK(copy_memory);

// Argument 0: bytes hashed over and over; 256 MiB come from memory, 1 MiB from cache.
void xxh3_kernel(benchmark::State& state) {
  const internal::Xxh3Kernels kernels = internal::xxh3_kernels();
  const auto number = static_cast<std::size_t>(state.range(1));
  if (number >= kernels.count || !kernels.list[number].usable) {
    state.SkipWithError("no such kernel on this CPU");
    return;
  }
  const Content secret = random_content(StrongHash::kSecretBytes, 1);
  const Content data = random_content(static_cast<std::size_t>(state.range(0)), 3);
  std::uint64_t sum = 0;
  for (auto _ : state) {
    for (std::size_t at = 0; at < data.size(); at += kBlockBytes) {
      sum += kernels.list[number]
                 .hash(data.data() + at, kBlockBytes, secret.data(), secret.size())
                 .low;
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetLabel(kernels.list[number].name);
  count_bytes(state, data.size());
}
BENCHMARK(xxh3_kernel)->ArgsProduct({{1 << 20, 256 << 20}, {0, 1, 2}});

void hash_ranges(benchmark::State& state, HashKind kind, std::size_t size) {
  const StrongHash hash = make_hash(kind);
  const Content data = random_content(size, 4);
  for (auto _ : state) {
    for (std::size_t at = 0; at < size; at += kRangeBytes) {
      benchmark::DoNotOptimize(hash.hash_range({data.data() + at, kRangeBytes}, true));
    }
  }
  count_bytes(state, size);
}
BENCHMARK_CAPTURE(hash_ranges, xxh3, HashKind::kXxh3, kBig);
BENCHMARK_CAPTURE(hash_ranges, xxh3_cached, HashKind::kXxh3, kRangeBytes);
BENCHMARK_CAPTURE(hash_ranges, sha256, HashKind::kSha256, kBig);

void test_zero(benchmark::State& state) {
  const Content zeros(kBig, 0);
  for (auto _ : state) benchmark::DoNotOptimize(is_zero(zeros));
  count_bytes(state, kBig);
}
BENCHMARK(test_zero);

// The aligned comparison of a range in which one block in a hundred differs, hashing included.
void compare_aligned(benchmark::State& state) {
  const StrongHash hash = make_hash();
  const Content source = random_content(kBig, 5);
  std::vector<std::vector<std::uint32_t>> basis;
  for (std::size_t at = 0; at < kBig; at += kRangeBytes) {
    basis.push_back(hash.hash_range({source.data() + at, kRangeBytes}, true).blocks);
    for (std::size_t i = 0; i < kBlocksPerRange; i += 100) ++basis.back()[i];
  }
  for (auto _ : state) {
    for (std::size_t i = 0; i < basis.size(); ++i) {
      const base::Bytes range(source.data() + i * kRangeBytes, kRangeBytes);
      const RangeHash own = hash.hash_range(range, true);
      benchmark::DoNotOptimize(compare_blocks(range, own.blocks, basis[i], kRangeBytes));
    }
  }
  count_bytes(state, kBig);
}
BENCHMARK(compare_aligned);

RollingSignature sign(const StrongHash& hash, const Content& basis, std::uint32_t block_bytes) {
  RollingSignature signature;
  signature.block_bytes = block_bytes;
  append_signature(hash, basis, signature);
  return signature;
}

void make_signature(benchmark::State& state) {
  const StrongHash hash = make_hash();
  const Content basis = random_content(kSource, 6);
  for (auto _ : state) benchmark::DoNotOptimize(sign(hash, basis, kRollingBlock));
  count_bytes(state, basis.size());
}
BENCHMARK(make_signature);

// 32 Ki blocks, the most that a window of 1 GiB has at the block size for it.
void build_index(benchmark::State& state) {
  const StrongHash hash = make_hash();
  RollingSignature signature;
  signature.block_bytes = 32768;
  std::mt19937_64 random(7);
  for (int i = 0; i < 32768; ++i) {
    signature.weak.push_back(static_cast<std::uint32_t>(random()));
    signature.strong.push_back(random());
  }
  for (auto _ : state) benchmark::DoNotOptimize(RollingIndex(hash, signature));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * signature.weak.size()));
}
BENCHMARK(build_index);

// Codes the whole source; the counters say what share of it matched.
void match_all(benchmark::State& state, const StrongHash& hash, const RollingSignature& signature,
               const Content& source) {
  const RollingIndex index(hash, signature);
  std::uint64_t copied = 0;
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    RollingMatcher matcher(hash, index, false);
    for (std::size_t at = 0; at < source.size(); at += kRangeBytes) {
      const std::size_t range = std::min<std::size_t>(kRangeBytes, source.size() - at);
      const std::size_t seen = std::min(range + signature.block_bytes, source.size() - at);
      for (const Instruction& step : matcher.match({source.data() + at, seen}, range, at)) {
        ++instructions;
        if (step.kind != InstructionKind::kLiteral) copied += step.length;
      }
    }
  }
  count_bytes(state, source.size());
  state.counters["matched_percent"] =
      benchmark::Counter(100.0 * static_cast<double>(copied) / static_cast<double>(source.size()),
                         benchmark::Counter::kAvgIterations);
  state.counters["instructions"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kAvgIterations);
}

// Nothing matches: the speed of the weak scan. Argument: blocks in the index.
void match_nothing(benchmark::State& state, HashKind kind) {
  const StrongHash hash = make_hash(kind);
  RollingSignature signature;
  signature.block_bytes = kRollingBlock;
  std::mt19937_64 random(8);
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    signature.weak.push_back(static_cast<std::uint32_t>(random()));
    signature.strong.push_back(random());
  }
  match_all(state, hash, signature, random_content(kSource, 9));
}
BENCHMARK_CAPTURE(match_nothing, xxh3, HashKind::kXxh3)->Arg(1)->Arg(4096)->Arg(32768);
BENCHMARK_CAPTURE(match_nothing, sha256, HashKind::kSha256)->Arg(32768);

void match_shifted(benchmark::State& state) {
  const StrongHash hash = make_hash();
  const Content basis = random_content(kSource, 10);
  Content source = random_content(1000, 11);
  source.insert(source.end(), basis.begin(), basis.end());
  match_all(state, hash, sign(hash, basis, kRollingBlock), source);
}
BENCHMARK(match_shifted);

void match_shuffled_blocks(benchmark::State& state) {
  const StrongHash hash = make_hash();
  const Content basis = random_content(kSource, 12);
  std::vector<std::size_t> order(kSource / kRollingBlock);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937_64(13));
  Content source;
  for (const std::size_t block : order) {
    const auto begin = basis.begin() + static_cast<std::ptrdiff_t>(block * kRollingBlock);
    source.insert(source.end(), begin, begin + kRollingBlock);
    source.push_back(7);
  }
  match_all(state, hash, sign(hash, basis, kRollingBlock), source);
}
BENCHMARK(match_shuffled_blocks);

void match_all_equal(benchmark::State& state) {
  const StrongHash hash = make_hash();
  const Content content(kSource, 'A');
  Content source(content);
  source.insert(source.begin(), 100, 'B');
  match_all(state, hash, sign(hash, content, kRollingBlock), source);
}
BENCHMARK(match_all_equal);

void match_zeros(benchmark::State& state) {
  const StrongHash hash = make_hash();
  match_all(state, hash, sign(hash, random_content(kSource, 14), kRollingBlock), Content(kSource));
}
BENCHMARK(match_zeros);

Content periodic_content(std::size_t size, std::size_t period, std::uint64_t seed) {
  const Content pattern = random_content(period + 8, seed);
  Content content(size);
  for (std::size_t i = 0; i < size; ++i) content[i] = pattern[i % period];
  return content;
}

void match_period_700(benchmark::State& state) {
  const StrongHash hash = make_hash();
  const Content basis = periodic_content(kSource, 700, 15);
  Content source = periodic_content(kSource, 700, 15);
  source.insert(source.begin(), 3, 'x');
  match_all(state, hash, sign(hash, basis, kRollingBlock), source);
}
BENCHMARK(match_period_700);

// The same source, but every strong hash of the signature is wrong: a weak match at every offset,
// never a real one.
void match_period_700_lies(benchmark::State& state, HashKind kind) {
  const StrongHash hash = make_hash(kind);
  const Content source = periodic_content(kSource, 700, 15);
  // At every phase, so that no offset goes without a hit.
  RollingSignature signature;
  signature.block_bytes = kRollingBlock;
  for (std::size_t phase = 0; phase < 700; ++phase) {
    append_signature(hash, {source.data() + phase, kRollingBlock}, signature);
  }
  for (std::uint64_t& strong : signature.strong) ++strong;
  match_all(state, hash, signature, source);
}
BENCHMARK_CAPTURE(match_period_700_lies, xxh3, HashKind::kXxh3);
BENCHMARK_CAPTURE(match_period_700_lies, sha256, HashKind::kSha256);

// Honest hashes of hostile content: "abba" and "baab" give equal sums of any order-one weak hash,
// so a basis of blocks drawn from the two and a source drawn likewise collide at every fourth
// offset and never match.
void match_colliding(benchmark::State& state, std::uint32_t block_bytes) {
  const StrongHash hash = make_hash();
  std::mt19937_64 random(16);
  const auto draw = [&random](std::size_t size) {
    Content content(size);
    for (std::size_t i = 0; i < size; i += 4) {
      std::memcpy(content.data() + i, (random() & 1) != 0 ? "abba" : "baab", 4);
    }
    return content;
  };
  const Content basis = draw(kSource);
  match_all(state, hash, sign(hash, basis, block_bytes), draw(kSource));
}
BENCHMARK_CAPTURE(match_colliding, 1k, 1024);
BENCHMARK_CAPTURE(match_colliding, 8k, 8192);
BENCHMARK_CAPTURE(match_colliding, 64k, 65536);

}  // namespace
}  // namespace volferry::delta
