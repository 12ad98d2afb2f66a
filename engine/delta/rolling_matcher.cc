// SPDX-License-Identifier: Apache-2.0
// The search of the rsync algorithm, range by range. A window of one block moves over the source
// byte by byte; where its weak hash is in the index, the strong hash decides, and a match moves the
// window by a whole block, onto the block that most likely comes next: the basis block after the
// matched one, which is tried by strong hash alone.
//
// What keeps it linear:
// - Every match moves on by a block and costs at most two strong hashes and one fresh window.
// - Lookups that find nothing are paid from a credit that grows with the bytes passed
// (kCreditPerByte). Content made to
//   hit the weak hash at every offset spends it at once; then offsets are passed without a lookup
//   until it has grown again. That can lose matches, but never time.
// - Windows of zeros are never looked up; a run of them is skipped at memory speed.
//
// Awkward cases: a block verified near the end of a range goes on in the next one (`pending`); and
// where the basis is overwritten in place, the part of a copy that lies below the range is already
// gone, so it becomes a literal.
#include <algorithm>
#include <optional>

#include "engine/delta/internal/instruction_list.h"
#include "engine/delta/internal/rolling_index_impl.h"
#include "engine/delta/internal/weak_hash.h"
#include "engine/delta/internal/zero_run.h"
#include "engine/delta/zero.h"

namespace volferry::delta {

namespace {

// Credit is counted in bytes hashed by XXH3 in cache: 40 GB/s with AVX2 on a Zen 4, where the scan
// does 1 GB/s or a little more. So 8 for each byte scanned add a fifth to a third, and colliding
// content ends up no slower than random content (bench/delta_bench.cc, match_colliding and
// match_period_700_lies). SHA-256 is 20 times slower.
constexpr std::int64_t kCreditPerByte = 8;
constexpr std::int64_t kXxh3Price = 1;
constexpr std::int64_t kSha256Price = 16;
// A lookup that ends before any strong hash: a mispredicted branch and a cache miss or two, then
// neighbouring slots.
constexpr std::int64_t kLookupPrice = 48;
constexpr std::int64_t kProbePrice = 8;
// Most credit that can be saved up, so that no single range takes long.
constexpr std::int64_t kMaxCredit = std::int64_t{1} << 20;
// Offsets scanned before the next look whether the window is all zeros.
constexpr std::size_t kScanChunk = 4096;

}  // namespace

struct RollingMatcher::Impl {
  using State = internal::WeakHash::State;
  static constexpr std::uint32_t kNoBlock = RollingIndex::Impl::kNoBlock;

  struct Match {
    std::size_t at;  // offset in `data`
    std::uint32_t block;
  };
  // The rest of a verified block that the last range had no room for.
  struct Pending {
    std::uint64_t basis_offset = 0;
    std::size_t length = 0;
  };

  Impl(const StrongHash& strong_hash, const RollingIndex::Impl& block_index, bool in_order)
      : hash(strong_hash),
        weak_hash(strong_hash, block_index.block_bytes),
        index(block_index),
        filter(block_index.filter()),
        block_bytes(block_index.block_bytes),
        ordered(in_order),
        strong_price(strong_hash.kind() == HashKind::kXxh3 ? kXxh3Price : kSha256Price) {}

  void forget();
  void start_range(base::Bytes bytes, std::size_t range_bytes, std::uint64_t range_offset);
  void finish_range();

  // The search. Offsets are into `data`.
  bool fits(std::size_t at) const { return at < range && block_bytes <= data.size() - at; }
  base::Bytes window(std::size_t at) const { return data.subspan(at, block_bytes); }
  std::optional<Match> next_match(std::size_t at);
  std::optional<Match> likely_match(std::size_t at);
  std::optional<Match> scan(std::size_t at);
  std::size_t scan_chunk(std::size_t at, std::size_t end, State& state) const;
  std::size_t skip_zeros(std::size_t at, std::size_t limit) const;
  std::optional<std::uint32_t> look_up(std::size_t at, std::uint32_t weak);
  std::uint32_t block_at_same_offset(std::size_t at) const;
  std::uint64_t strong_at(std::size_t at);
  bool usable(std::uint32_t block, std::size_t at) const;

  // The credit for lookups.
  void earn(std::size_t at);
  std::size_t affordable_from(std::size_t at) const;

  // The output.
  void emit_gap(std::size_t begin, std::size_t end);
  void emit_copy(std::size_t at, std::uint64_t basis_offset, std::size_t length);
  std::size_t emit_block(const Match& match);

  const StrongHash& hash;
  const internal::WeakHash weak_hash;
  const RollingIndex::Impl& index;
  const internal::WeakFilter filter;
  const std::size_t block_bytes;  // 0: the index is empty
  const bool ordered;
  const std::int64_t strong_price;

  // Carried from range to range.
  Pending pending;
  std::uint32_t expected_block = kNoBlock;  // likely to follow the last match
  std::uint64_t next_offset = 0;            // where the next range begins if nothing is left out
  std::int64_t credit = kMaxCredit;

  // Of the range being coded.
  base::Bytes data;
  std::size_t range = 0;
  std::uint64_t offset = 0;
  std::size_t earned_to = 0;
  std::size_t hashed_at = 0;  // where `hashed` is the window's strong hash
  std::optional<std::uint64_t> hashed;
  internal::InstructionList list;
};

void RollingMatcher::Impl::forget() {
  pending = {};
  expected_block = kNoBlock;
}

void RollingMatcher::Impl::start_range(base::Bytes bytes, std::size_t range_bytes,
                                       std::uint64_t range_offset) {
  if (range_offset != next_offset) forget();
  data = bytes;
  range = std::min(range_bytes, bytes.size());
  offset = range_offset;
  next_offset = range_offset + range;
  earned_to = 0;
  hashed.reset();
}

void RollingMatcher::Impl::finish_range() {
  earn(range);
  data = {};
}

// The likely block first, then whatever the scan finds from here on.
std::optional<RollingMatcher::Impl::Match> RollingMatcher::Impl::next_match(std::size_t at) {
  if (index.held == 0 || !fits(at)) return std::nullopt;
  if (const auto likely = likely_match(at)) return likely;
  return scan(at);
}

// The block after the last match, or else the one that stands at this offset in the basis too.
std::optional<RollingMatcher::Impl::Match> RollingMatcher::Impl::likely_match(std::size_t at) {
  const std::uint32_t same = block_at_same_offset(at);
  if (same != kNoBlock && index.strong[same] == strong_at(at)) return Match{at, same};
  const std::uint32_t block = expected_block;
  if (block >= index.strong.size() || !usable(block, at)) return std::nullopt;
  if (index.strong[block] == index.zero_strong) return std::nullopt;  // a zero run does better
  if (index.strong[block] != strong_at(at)) return std::nullopt;
  return Match{at, block};
}

std::optional<RollingMatcher::Impl::Match> RollingMatcher::Impl::scan(std::size_t at) {
  // Windows may start anywhere in [at, limit).
  const std::size_t limit = std::min(range, data.size() - block_bytes + 1);
  State state = weak_hash.state(window(at));
  while (true) {
    if (state == State{}) at = skip_zeros(at, limit);
    const std::size_t end = std::min(limit, at + kScanChunk);
    at = scan_chunk(at, end, state);
    if (at == limit) return std::nullopt;
    if (at == end) continue;
    if (const auto block = look_up(at, state.weak)) return Match{at, *block};
    if (at + 1 == limit) return std::nullopt;
    state = weak_hash.roll(state, data[at], data[at + block_bytes]);
    ++at;
  }
}

// The first offset in [at, end) whose weak hash is worth a lookup, or else `end`. `state` becomes
// that of the offset returned, where a window fits there.
std::size_t RollingMatcher::Impl::scan_chunk(std::size_t at, std::size_t end, State& state) const {
  const std::size_t last_start = data.size() - block_bytes;
  const std::size_t rollable = std::min(end, last_start);
  const std::size_t affordable = std::min(rollable, affordable_from(at));
  if (affordable > at) {
    weak_hash.roll_to(data, at, affordable, state);
    at = affordable;
  }
  at = weak_hash.roll_until(data, at, rollable, filter, state);
  if (at < rollable || rollable == end) return at;
  // The last window of the content: no byte is left to roll it further.
  return filter.may_contain(state.weak) && affordable_from(at) <= at ? at : end;
}

// The last offset from which on windows are all zeros, so that the state stays the empty one; `at`
// where the window at `at` is not.
std::size_t RollingMatcher::Impl::skip_zeros(std::size_t at, std::size_t limit) const {
  const std::size_t zeros = internal::zero_prefix(data.subspan(at));
  if (zeros <= block_bytes) return at;
  return std::min(at + zeros - block_bytes, limit - 1);
}

// The block that the window at `at` matches. A lookup that finds none is charged to the credit.
std::optional<std::uint32_t> RollingMatcher::Impl::look_up(std::size_t at, std::uint32_t weak) {
  earn(at);
  const RollingIndex::Impl::Candidates found = index.find(weak);
  bool hashed_here = false;
  for (std::size_t i = 0; i < found.count; ++i) {
    const std::uint32_t block = found.blocks[i];
    if (!usable(block, at)) continue;
    hashed_here = true;
    if (index.strong[block] != strong_at(at)) continue;
    const std::uint32_t same = block_at_same_offset(at);
    return same != kNoBlock && index.strong[same] == index.strong[block] ? same : block;
  }
  credit -= kLookupPrice + kProbePrice * static_cast<std::int64_t>(found.probes);
  if (hashed_here) credit -= strong_price * static_cast<std::int64_t>(block_bytes);
  return std::nullopt;
}

std::uint32_t RollingMatcher::Impl::block_at_same_offset(std::size_t at) const {
  const std::uint64_t source = offset + at;
  if (source < index.offset || (source - index.offset) % block_bytes != 0) return kNoBlock;
  const std::uint64_t block = (source - index.offset) / block_bytes;
  return block < index.strong.size() ? static_cast<std::uint32_t>(block) : kNoBlock;
}

// The strong hash of the window, computed once however many ask for it.
std::uint64_t RollingMatcher::Impl::strong_at(std::size_t at) {
  if (!hashed || hashed_at != at) {
    hashed = hash.hash64(window(at));
    hashed_at = at;
  }
  return *hashed;
}

// Where the basis is overwritten in place, a block must reach into what is still there.
bool RollingMatcher::Impl::usable(std::uint32_t block, std::size_t at) const {
  const std::uint64_t basis = index.block_offset(block);
  return !ordered || basis == offset + at || basis + block_bytes > offset;
}

void RollingMatcher::Impl::earn(std::size_t at) {
  credit += kCreditPerByte * static_cast<std::int64_t>(at - earned_to);
  credit = std::min(credit, kMaxCredit);
  earned_to = at;
}

// The first offset from `at` on at which the credit is not overdrawn.
std::size_t RollingMatcher::Impl::affordable_from(std::size_t at) const {
  if (credit >= 0) return at;
  const std::size_t wait =
      static_cast<std::size_t>((-credit + kCreditPerByte - 1) / kCreditPerByte);
  return earned_to + wait;
}

void RollingMatcher::Impl::emit_gap(std::size_t begin, std::size_t end) {
  const base::Bytes gap = data.first(end);
  while (begin < end) {
    const internal::ZeroRun run = internal::find_zero_run(gap, begin);
    const std::size_t literal_end = run.empty() ? end : run.begin;
    list.add(InstructionKind::kLiteral, literal_end - begin);
    list.add(InstructionKind::kZero, run.end - run.begin);
    begin = run.empty() ? end : run.end;
  }
}

void RollingMatcher::Impl::emit_copy(std::size_t at, std::uint64_t basis_offset,
                                     std::size_t length) {
  if (basis_offset == offset + at) {
    list.add(InstructionKind::kSame, length);
    return;
  }
  std::size_t gone = 0;
  if (ordered && basis_offset < offset) {
    gone = static_cast<std::size_t>(std::min<std::uint64_t>(length, offset - basis_offset));
    emit_gap(at, at + gone);
  }
  list.add(InstructionKind::kCopy, length - gone, basis_offset + gone);
}

// Codes the part of a matched block that lies in the range and remembers the rest. Returns where it
// ends.
std::size_t RollingMatcher::Impl::emit_block(const Match& match) {
  const std::uint64_t basis = index.block_offset(match.block);
  const std::size_t length = std::min(block_bytes, range - match.at);
  emit_copy(match.at, basis, length);
  pending = {basis + length, block_bytes - length};
  expected_block = match.block + 1;
  return match.at + length;
}

RollingMatcher::RollingMatcher(const StrongHash& hash, const RollingIndex& index, bool ordered)
    : impl_(std::make_unique<Impl>(hash, *index.impl_, ordered)) {}
RollingMatcher::~RollingMatcher() = default;

void RollingMatcher::reset() { impl_->forget(); }

std::vector<Instruction> RollingMatcher::match(base::Bytes data, std::size_t range_bytes,
                                               std::uint64_t range_offset) {
  Impl& m = *impl_;
  m.start_range(data, range_bytes, range_offset);

  // What the last range's final block still owes.
  std::size_t at = std::min(m.pending.length, m.range);
  m.emit_copy(0, m.pending.basis_offset, at);
  m.pending = {m.pending.basis_offset + at, m.pending.length - at};

  while (const auto match = m.next_match(at)) {
    m.emit_gap(at, match->at);
    at = m.emit_block(*match);
  }
  // A gap that reaches the end of the range ends the expectation, too.
  if (at < m.range) m.expected_block = Impl::kNoBlock;
  m.emit_gap(at, m.range);
  m.finish_range();
  return m.list.take();
}

}  // namespace volferry::delta
