// SPDX-License-Identifier: Apache-2.0
// The rolling search: finds blocks of the basis at any offset of the source (Tridgell and
// Mackerras, "The rsync algorithm", 1996), bounded so that no content makes it slow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/delta/instruction.h"
#include "engine/delta/strong_hash.h"

namespace volferry::delta {

inline constexpr std::uint32_t kMinRollingBlock = 512;
inline constexpr std::uint32_t kMaxRollingBlock = 131072;

// The block size for a basis of that many bytes: about its square root, a power of two within [1
// KiB, 64 KiB].
std::uint32_t rolling_block_bytes(std::uint64_t basis_bytes);

// Weak and strong hashes of consecutive whole blocks of the basis, starting at `offset`.
struct RollingSignature {
  std::uint64_t offset = 0;
  std::uint32_t block_bytes = 0;
  std::vector<std::uint32_t> weak;
  std::vector<std::uint64_t> strong;
};

// Appends the hashes of the whole blocks in `data` (its length a multiple of the block size, or the
// tail is ignored).
void append_signature(const StrongHash& hash, base::Bytes data, RollingSignature& signature);

// An index over one signature window. Immutable after construction; memory about 24 bytes a block.
// Equal blocks are held once (the one at the lowest offset), all-zero blocks not at all, and a
// lookup makes a bounded number of probes.
class RollingIndex {
 public:
  RollingIndex(const StrongHash& hash, RollingSignature signature);
  ~RollingIndex();
  RollingIndex(RollingIndex&&) noexcept;
  // 0 where the signature's block size or offset made no sense: the index is then empty.
  std::uint32_t block_bytes() const;
  // Different blocks that a search can find.
  std::size_t blocks() const;
  std::uint64_t bytes() const;  // memory held

 private:
  friend class RollingMatcher;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Codes the source range by range against one index. Carries an unfinished match from one range
// into the next, so ranges must be given in order; `reset` forgets it after a gap.
class RollingMatcher {
 public:
  // Both outlive the matcher. `ordered`: the basis is overwritten in place, range after range, so a
  // copy must not read below the start of the range being built.
  RollingMatcher(const StrongHash& hash, const RollingIndex& index, bool ordered);
  ~RollingMatcher();

  // `data` starts with the range to code (`range_bytes` of it) and goes on with look-ahead:
  // block_bytes() more bytes of the source, fewer only at the end of the file. `range_offset`: the
  // range's offset in the source. Returned lengths add up to range_bytes; a match is truncated at
  // the range's end and continued by the next call. Zero runs of at least 4 KiB become kZero; a
  // copy from the same offset becomes kSame. Linear in data.size() whatever the content.
  std::vector<Instruction> match(base::Bytes data, std::size_t range_bytes,
                                 std::uint64_t range_offset);
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace volferry::delta
