// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/strong_hash.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/delta/internal/sha256.h"

namespace volferry::delta {

namespace {

constexpr std::size_t kMinXxh3Secret = 136;  // XXH3_SECRET_SIZE_MIN
constexpr std::size_t kMinSha256Secret = 16;
constexpr std::size_t kMaxDigestBytes = 32;
// Digests hashed in one link of `combine`: 128 KiB at most.
constexpr std::size_t kDigestsPerLink = 4096;

void store_little_endian(std::uint64_t value, std::uint8_t* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint64_t load_little_endian(const std::uint8_t* in) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(in[i]) << (8 * i);
  return value;
}

std::uint64_t low_64(const Digest& digest) { return load_little_endian(digest.bytes.data()); }

// The session secret, told apart by domain: XXH3 takes no prefix as cheaply as another key.
std::vector<std::uint8_t> derive_key(base::Bytes secret, std::uint8_t domain) {
  std::vector<std::uint8_t> key(secret.begin(), secret.end());
  for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(byte ^ (domain * 0x55));
  return key;
}

void append(std::vector<std::uint8_t>& out, base::Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

Result<StrongHash> StrongHash::create(HashKind kind, base::Bytes secret) {
  if (kind != HashKind::kXxh3 && kind != HashKind::kSha256) {
    return fail_with(Code::kProtocol, "unknown hash kind");
  }
  const std::size_t least = kind == HashKind::kXxh3 ? kMinXxh3Secret : kMinSha256Secret;
  if (secret.size() < least || secret.size() > kSecretBytes) {
    return fail_with(Code::kProtocol, "hash secret of " + std::to_string(secret.size()) + " bytes");
  }
  return StrongHash(kind, secret);
}

StrongHash::StrongHash(HashKind kind, base::Bytes secret)
    : kind_(kind), xxh3_(internal::best_xxh3()) {
  for (std::size_t i = 0; i < kDomains; ++i) {
    keys_[i] = derive_key(secret, static_cast<std::uint8_t>(i));
  }
}

Digest StrongHash::flat(Domain domain, base::Bytes data) const {
  const std::vector<std::uint8_t>& key = keys_[static_cast<std::size_t>(domain)];
  Digest digest;
  digest.size = static_cast<std::uint8_t>(digest_bytes());
  if (kind_ == HashKind::kSha256) {
    digest.bytes = internal::keyed_sha256(key, static_cast<std::uint8_t>(domain), data);
    return digest;
  }
  const internal::Hash128 hash = xxh3_(data.data(), data.size(), key.data(), key.size());
  store_little_endian(hash.low, digest.bytes.data());
  store_little_endian(hash.high, digest.bytes.data() + 8);
  return digest;
}

RangeHash StrongHash::hash_range(base::Bytes data, bool want_blocks) const {
  VF_CHECK(data.size() <= kRangeBytes, "more than one range");
  std::array<std::uint8_t, kBlocksPerRange * kMaxDigestBytes> leaves;
  std::size_t filled = 0;
  RangeHash result;
  if (want_blocks) result.blocks.reserve((data.size() + kBlockBytes - 1) / kBlockBytes);
  for (std::size_t at = 0; at < data.size(); at += kBlockBytes) {
    const std::size_t length = std::min<std::size_t>(kBlockBytes, data.size() - at);
    const Digest leaf = flat(Domain::kBlock, data.subspan(at, length));
    std::memcpy(leaves.data() + filled, leaf.bytes.data(), leaf.size);
    filled += leaf.size;
    if (want_blocks) result.blocks.push_back(static_cast<std::uint32_t>(low_64(leaf)));
  }
  result.digest = flat(Domain::kRange, {leaves.data(), filled});
  return result;
}

std::uint64_t StrongHash::hash64(base::Bytes data) const {
  return low_64(flat(Domain::kFlat, data));
}

// A chain of links, each over the link before, the number of digests so far and the next digests:
// memory stays small for files of any size.
Digest StrongHash::combine(const std::vector<Digest>& range_digests) const {
  Digest link;
  link.size = static_cast<std::uint8_t>(digest_bytes());
  std::size_t at = 0;
  do {
    const std::size_t end = std::min(at + kDigestsPerLink, range_digests.size());
    std::vector<std::uint8_t> node(link.bytes.begin(), link.bytes.begin() + link.size);
    node.resize(node.size() + 8);
    store_little_endian(end, node.data() + link.size);
    for (; at < end; ++at) append(node, range_digests[at].view());
    link = flat(Domain::kChain, node);
  } while (at < range_digests.size());
  return link;
}

}  // namespace volferry::delta
