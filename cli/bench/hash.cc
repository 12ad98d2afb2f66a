// SPDX-License-Identifier: Apache-2.0
// What a core does with bytes in memory: hashing, finding zeros, the rolling search, the delta of a
// changed volume.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "cli/bench/measure.h"

#include "engine/base/random.h"
#include "engine/delta/aligned.h"
#include "engine/delta/rolling.h"
#include "engine/delta/strong_hash.h"
#include "engine/delta/zero.h"

namespace volferry::cli::bench {

namespace {

using delta::kBlockBytes;
using delta::kRangeBytes;

constexpr std::size_t kSourceBytes = 64u << 20;
constexpr std::size_t kDeltaBytes = 256u << 20;
constexpr std::size_t kBasisBytes = 16u << 20;

using Data = std::vector<std::uint8_t>;

base::Bytes range_of(const Data& data, std::size_t at) {
  return base::Bytes(data).subspan(at, std::min<std::size_t>(kRangeBytes, data.size() - at));
}

Result<delta::StrongHash> make_hash(delta::HashKind kind) {
  Data secret(delta::StrongHash::kSecretBytes);
  base::fill_random(secret);
  return delta::StrongHash::create(kind, secret);
}

std::uint64_t hash_all(const delta::StrongHash& hash, const Data& data) {
  for (std::size_t at = 0; at < data.size(); at += kRangeBytes)
    (void)hash.hash_range(range_of(data, at), true);
  return data.size();
}

// The library's own speed over the same pieces.
double openssl_sha256(const Context& context, const Data& data) {
  return measure(context, [&]() -> std::uint64_t {
    std::uint8_t digest[EVP_MAX_MD_SIZE];
    for (std::size_t at = 0; at < data.size(); at += kRangeBytes) {
      const base::Bytes piece = range_of(data, at);
      if (EVP_Digest(piece.data(), piece.size(), digest, nullptr, EVP_sha256(), nullptr) != 1)
        return 0;
    }
    return data.size();
  });
}

void bench_hashes(Context& context, const Data& data) {
  if (const auto hash = make_hash(delta::HashKind::kXxh3))
    context.rows.push_back({.name = "hash xxh3",
                            .unit = "bytes",
                            .rate = measure(context, [&] { return hash_all(*hash, data); }),
                            .limit = context.memory_read,
                            .limit_name = "memory read"});
  if (const auto hash = make_hash(delta::HashKind::kSha256))
    context.rows.push_back({.name = "hash sha256",
                            .unit = "bytes",
                            .rate = measure(context, [&] { return hash_all(*hash, data); }),
                            .limit = openssl_sha256(context, data),
                            .limit_name = "OpenSSL SHA-256"});
}

void bench_zero(Context& context) {
  const Data zeros(kSourceBytes);
  context.rows.push_back(
      {.name = "zero detection",
       .unit = "bytes",
       .rate = measure(context,
                       [&]() -> std::uint64_t {
                         for (std::size_t at = 0; at < zeros.size(); at += kBlockBytes)
                           if (!delta::is_zero(base::Bytes(zeros).subspan(at, kBlockBytes)))
                             return 0;
                         return zeros.size();
                       }),
       .limit = context.memory_read,
       .limit_name = "memory read"});
}

// The rolling search over data that matches nowhere: every byte is looked at.
void bench_weak_scan(Context& context, const Data& data) {
  const auto hash = make_hash(delta::HashKind::kXxh3);
  if (!hash) return;
  delta::RollingSignature signature;
  signature.block_bytes = delta::rolling_block_bytes(kSourceBytes);
  delta::append_signature(*hash, random_data(kBasisBytes, 7), signature);
  const std::size_t ahead = signature.block_bytes;
  const delta::RollingIndex index(*hash, std::move(signature));
  const auto scan = [&]() -> std::uint64_t {
    delta::RollingMatcher matcher(*hash, index, false);
    for (std::size_t at = 0; at < data.size(); at += kRangeBytes) {
      const std::size_t range = std::min<std::size_t>(kRangeBytes, data.size() - at);
      const std::size_t with_ahead = std::min(range + ahead, data.size() - at);
      (void)matcher.match(base::Bytes(data).subspan(at, with_ahead), range, at);
    }
    return data.size();
  };
  context.rows.push_back({.name = "weak scan, no match",
                          .unit = "bytes",
                          .rate = measure(context, scan),
                          .limit = context.memory_read,
                          .limit_name = "memory read"});
}

// Both ends' work on one core: hash the old and the new range, and where they differ compare their
// blocks. Returns the bytes that would be sent.
std::uint64_t delta_pass(const delta::StrongHash& hash, const Data& before, const Data& after) {
  std::uint64_t literal = 0;
  for (std::size_t at = 0; at < after.size(); at += kRangeBytes) {
    const base::Bytes fresh = range_of(after, at);
    const delta::RangeHash old_hash = hash.hash_range(range_of(before, at), true);
    const delta::RangeHash new_hash = hash.hash_range(fresh, true);
    if (old_hash.digest == new_hash.digest) continue;
    for (const delta::Instruction& step :
         delta::compare_blocks(fresh, new_hash.blocks, old_hash.blocks, fresh.size()))
      if (step.kind == delta::InstructionKind::kLiteral) literal += step.length;
  }
  return literal;
}

void bench_delta(Context& context) {
  const auto hash = make_hash(delta::HashKind::kXxh3);
  if (!hash || context.stopped()) return;
  const Data before = random_data(kDeltaBytes, 11);
  Data after = before;
  for (std::size_t block = 0; block < kDeltaBytes / kBlockBytes; block += 100)
    after[block * kBlockBytes + block % kBlockBytes] ^= 0xff;
  std::uint64_t literal = 0;
  const double rate = measure(context, [&]() -> std::uint64_t {
    literal = delta_pass(*hash, before, after);
    return after.size();
  });
  context.rows.push_back(
      {.name = "delta, 1 % changed",
       .unit = "bytes",
       .rate = rate,
       // Old and new are read on the same core.
       .limit = context.memory_read / 2,
       .limit_name = "memory read / 2",
       .note = fmt::format("{:.1f} MB to send of {} MB", literal / 1e6, kDeltaBytes / 1000000)});
}

}  // namespace

void bench_hash(Context& context) {
  const Data data = random_data(kSourceBytes, 3);
  bench_hashes(context, data);
  bench_zero(context);
  bench_weak_scan(context, data);
  bench_delta(context);
}

}  // namespace volferry::cli::bench
