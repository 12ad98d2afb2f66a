// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#include "engine/delta/internal/rolling_index_impl.h"
#include "engine/delta/rolling.h"

namespace volferry::delta {

namespace {

// Bits of filter for each block: 32 to 64 after rounding. Of the offsets of random data 3 to 6 %
// find the first bit, 0.1 to 0.4 % both. At most 2^16 words, which are 256 KiB, half of the
// smallest L2 cache in use.
constexpr std::size_t kFilterBitsPerBlock = 32;
constexpr std::size_t kMaxFilterWords = std::size_t{1} << 16;

bool makes_sense(const RollingSignature& signature, std::size_t count) {
  if (signature.block_bytes < kMinRollingBlock || signature.block_bytes > kMaxRollingBlock) {
    return false;
  }
  if (count >= std::numeric_limits<std::uint32_t>::max()) return false;
  const std::uint64_t length = std::uint64_t{count} * signature.block_bytes;
  return signature.offset <= std::numeric_limits<std::int64_t>::max() - length;
}

std::uint64_t hash_of_zeros(const StrongHash& hash, std::size_t size) {
  return hash.hash64(std::vector<std::uint8_t>(size));
}

}  // namespace

// `weak` and `strong` come from the peer, so nothing is taken for granted: not their lengths, not
// that they belong together, not that weak hashes are spread.
RollingIndex::RollingIndex(const StrongHash& hash, RollingSignature signature)
    : impl_(std::make_unique<Impl>()) {
  const std::size_t count = std::min(signature.weak.size(), signature.strong.size());
  if (!makes_sense(signature, count)) return;
  impl_->offset = signature.offset;
  impl_->block_bytes = signature.block_bytes;
  impl_->strong = std::move(signature.strong);
  impl_->strong.resize(count);
  impl_->strong.shrink_to_fit();
  signature.weak.resize(count);
  impl_->build(signature.weak, hash_of_zeros(hash, signature.block_bytes));
}

RollingIndex::~RollingIndex() = default;
RollingIndex::RollingIndex(RollingIndex&&) noexcept = default;

std::uint32_t RollingIndex::block_bytes() const { return impl_->block_bytes; }
std::size_t RollingIndex::blocks() const { return impl_->held; }

std::uint64_t RollingIndex::bytes() const {
  return sizeof(Impl) + impl_->filter_words.capacity() * sizeof(std::uint32_t) +
         impl_->slots.capacity() * sizeof(Impl::Slot) +
         impl_->strong.capacity() * sizeof(std::uint64_t);
}

void RollingIndex::Impl::build(const std::vector<std::uint32_t>& weak, std::uint64_t zeros) {
  zero_strong = zeros;
  const std::size_t words = std::bit_ceil(weak.size() * kFilterBitsPerBlock / 32 + 1);
  filter_words.assign(std::min(words, kMaxFilterWords), 0);
  slots.resize(weak.size() + weak.size() / 3 + 1);
  for (std::size_t i = 0; i < weak.size(); ++i) {
    if (strong[i] != zeros) insert(weak[i], static_cast<std::uint32_t>(i));
  }
}

void RollingIndex::Impl::add_to_filter(std::uint32_t weak) {
  using internal::WeakFilter;
  std::uint32_t& word = filter_words[weak & (filter_words.size() - 1)];
  word |= std::uint32_t{1} << WeakFilter::first_bit(weak);
  word |= std::uint32_t{1} << WeakFilter::second_bit(weak);
}

void RollingIndex::Impl::insert(std::uint32_t weak, std::uint32_t block) {
  std::size_t equal_weak = 0;
  std::size_t at = first_slot(weak);
  const std::size_t probes = std::min(kMaxProbes, slots.size());
  for (std::size_t i = 0; i < probes; ++i) {
    Slot& slot = slots[at];
    if (slot.block == kNoBlock) {
      slot = {weak, block};
      add_to_filter(weak);
      ++held;
      return;
    }
    if (slot.weak == weak) {
      if (strong[slot.block] == strong[block] || ++equal_weak == kMaxEqualWeak) return;
    }
    if (++at == slots.size()) at = 0;
  }
}

RollingIndex::Impl::Candidates RollingIndex::Impl::find(std::uint32_t weak) const {
  Candidates found;
  std::size_t at = first_slot(weak);
  const std::size_t probes = std::min(kMaxProbes, slots.size());
  for (; found.probes < probes && found.count < kMaxEqualWeak; ++found.probes) {
    const Slot& slot = slots[at];
    if (slot.block == kNoBlock) break;
    if (slot.weak == weak) found.blocks[found.count++] = slot.block;
    if (++at == slots.size()) at = 0;
  }
  return found;
}

}  // namespace volferry::delta
