// SPDX-License-Identifier: Apache-2.0
// Eight steps at a time: both running sums are prefix sums over lanes plus a carry, and the random
// words are computed instead of looked up, so that the only gather left is the one into the filter.
#include <immintrin.h>

#include "engine/delta/internal/roll.h"

namespace volferry::delta::internal {

namespace {

constexpr std::size_t kLanes = 8;
static_assert(kLanes == kStateGroup);

__m256i load_bytes(const std::uint8_t* bytes) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
}

__m256i mix(__m256i bytes, __m256i factor) {
  const __m256i word = _mm256_mullo_epi32(bytes, factor);
  return _mm256_xor_si256(word, _mm256_srli_epi32(word, 15));
}

// Lane i becomes the sum of lanes 0 to i.
__m256i prefix_sum(__m256i x) {
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
  // The last lane of the lower half, added to the whole upper half.
  const __m256i last = _mm256_shuffle_epi32(x, 0xff);
  return _mm256_add_epi32(x, _mm256_permute2x128_si256(last, last, 0x08));
}

__m256i broadcast_last(__m256i x) {
  return _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(kLanes - 1));
}

// Whether the filter lets any lane pass.
bool any_passes(__m256i weak, const WeakFilter& filter) {
  const __m256i word = _mm256_i32gather_epi32(
      reinterpret_cast<const int*>(filter.words),
      _mm256_and_si256(weak, _mm256_set1_epi32(static_cast<int>(filter.mask))), 4);
  const __m256i first = _mm256_srlv_epi32(word, _mm256_srli_epi32(weak, 27));
  const __m256i second =
      _mm256_srlv_epi32(word, _mm256_and_si256(_mm256_srli_epi32(weak, 22), _mm256_set1_epi32(31)));
  const __m256i both = _mm256_and_si256(_mm256_and_si256(first, second), _mm256_set1_epi32(1));
  return _mm256_testz_si256(both, both) == 0;
}

}  // namespace

// Each lane sums every eighth byte. With G groups, byte l of group g weighs 8 (G - g) - l: eight
// times what the lane's running sum gives it, less its place in the group.
RollState state_avx2(const std::uint8_t* bytes, std::size_t count, WordMixer mixer) {
  const __m256i factor = _mm256_set1_epi32(static_cast<int>(mixer.factor));
  __m256i sums = _mm256_setzero_si256();
  __m256i weaks = _mm256_setzero_si256();
  for (std::size_t at = 0; at + kLanes <= count; at += kLanes) {
    sums = _mm256_add_epi32(sums, mix(load_bytes(bytes + at), factor));
    weaks = _mm256_add_epi32(weaks, sums);
  }
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i weighed =
      _mm256_sub_epi32(_mm256_slli_epi32(weaks, 3), _mm256_mullo_epi32(sums, places));
  const auto total = [](__m256i lanes) {
    return static_cast<std::uint32_t>(_mm256_cvtsi256_si32(broadcast_last(prefix_sum(lanes))));
  };
  return {total(sums), total(weighed)};
}

std::size_t roll_avx2(const RollInput& input, RollState& state, std::size_t count) {
  const __m256i factor = _mm256_set1_epi32(static_cast<int>(input.mixer.factor));
  const __m256i block_bytes = _mm256_set1_epi32(static_cast<int>(input.block_bytes));
  const WeakFilter filter = input.filter;
  __m256i sum = _mm256_set1_epi32(static_cast<int>(state.sum));
  __m256i weak = _mm256_set1_epi32(static_cast<int>(state.weak));
  std::size_t done = 0;
  for (; count - done >= kLanes; done += kLanes) {
    const __m256i out = mix(load_bytes(input.out + done), factor);
    const __m256i in = mix(load_bytes(input.in + done), factor);
    const __m256i sums = _mm256_add_epi32(sum, prefix_sum(_mm256_sub_epi32(in, out)));
    const __m256i steps = _mm256_sub_epi32(sums, _mm256_mullo_epi32(out, block_bytes));
    const __m256i weaks = _mm256_add_epi32(weak, prefix_sum(steps));
    if (filter.words != nullptr && any_passes(weaks, filter)) break;
    sum = broadcast_last(sums);
    weak = broadcast_last(weaks);
  }
  state.sum = static_cast<std::uint32_t>(_mm256_cvtsi256_si32(sum));
  state.weak = static_cast<std::uint32_t>(_mm256_cvtsi256_si32(weak));
  return done;
}

}  // namespace volferry::delta::internal
