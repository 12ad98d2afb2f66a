// SPDX-License-Identifier: Apache-2.0
// Keyed strong hashes. A range's digest is a two-level tree: H(H(block 0) || H(block 1) || ...)
// over 4 KiB blocks, so that one pass over the data gives both the range digest and the block
// hashes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/delta/geometry.h"
#include "engine/delta/internal/xxh3.h"

namespace volferry::delta {

enum class HashKind : std::uint8_t { kXxh3, kSha256 };

// 16 bytes for xxh3 (XXH3-128 with a secret), 32 for sha256 (of secret || data).
struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  std::uint8_t size = 0;
  base::Bytes view() const { return {bytes.data(), size}; }
  bool operator==(const Digest&) const = default;
};

// What one range hashes to.
struct RangeHash {
  Digest digest;                      // of the range
  std::vector<std::uint32_t> blocks;  // low 32 bits of each block's hash; empty unless asked for
};

// Immutable, so safe to share between threads.
class StrongHash {
 public:
  // Bytes of secret that a session should draw: 192.
  static constexpr std::size_t kSecretBytes = 192;
  // `secret`: 136..192 bytes for xxh3, 16..192 for sha256; kProtocol otherwise (it may come from
  // the peer).
  static Result<StrongHash> create(HashKind kind, base::Bytes secret);

  HashKind kind() const { return kind_; }
  std::size_t digest_bytes() const { return kind_ == HashKind::kXxh3 ? 16 : 32; }

  // `data`: one range, at most kRangeBytes bytes (a hash of no bytes is defined too).
  RangeHash hash_range(base::Bytes data, bool want_blocks) const;
  // A flat hash of any bytes, truncated to 64 bits: the strong half of a rolling signature.
  std::uint64_t hash64(base::Bytes data) const;
  // Streams any number of bytes into one digest equal for equal streams however they are split at
  // range boundaries: the digest of the ranges' digests. For whole-file digests in `verify`.
  Digest combine(const std::vector<Digest>& range_digests) const;

 private:
  // What a hash is of. Each has a key of its own, so that a block never hashes like a node made of
  // block hashes.
  enum class Domain : std::uint8_t { kBlock, kRange, kChain, kFlat };
  static constexpr std::size_t kDomains = 4;

  StrongHash(HashKind kind, base::Bytes secret);
  Digest flat(Domain domain, base::Bytes data) const;

  HashKind kind_;
  internal::Xxh3Function xxh3_;
  std::array<std::vector<std::uint8_t>, kDomains> keys_;
};

}  // namespace volferry::delta
