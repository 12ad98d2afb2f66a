// SPDX-License-Identifier: Apache-2.0
// Runs the rolling matcher as a session does, range by range, and applies what it says.
#pragma once

#include <algorithm>
#include <optional>

#include "tests/unit/delta/content.h"

#include "engine/delta/geometry.h"
#include "engine/delta/rolling.h"

namespace volferry::delta::testing {

struct Rebuilt {
  Content content;
  std::size_t literal = 0;
  std::size_t copied = 0;
  std::size_t same = 0;
  std::size_t zero = 0;
  std::size_t instructions = 0;
  std::string fault;  // empty unless an instruction broke the contract
};

struct Job {
  std::uint32_t block_bytes = 1024;
  bool ordered = false;
  std::size_t range_bytes = kRangeBytes;
  HashKind kind = HashKind::kXxh3;
};

inline RollingSignature sign(const StrongHash& hash, base::Bytes basis, std::uint32_t block_bytes) {
  RollingSignature signature;
  signature.block_bytes = block_bytes;
  append_signature(hash, basis, signature);
  return signature;
}

// Builds one range from `basis`, which in ordered mode is the file being overwritten.
inline void apply_range(const std::vector<Instruction>& steps, base::Bytes source, std::size_t at,
                        std::size_t range, bool ordered, const Content& basis, Content& built,
                        Rebuilt& result) {
  std::size_t done = 0;
  for (const Instruction& step : steps) {
    ++result.instructions;
    if (step.length == 0 || step.length > range - done) result.fault = "length";
    if (!result.fault.empty()) return;
    std::uint64_t from = step.basis_offset;
    if (step.kind != InstructionKind::kCopy && from != 0) result.fault = "offset without copy";
    if (step.kind == InstructionKind::kSame) from = at + done;
    switch (step.kind) {
      case InstructionKind::kLiteral: {
        const auto bytes = source.subspan(at + done, step.length);
        built.insert(built.end(), bytes.begin(), bytes.end());
        result.literal += step.length;
        break;
      }
      case InstructionKind::kZero:
        built.resize(built.size() + step.length, 0);
        result.zero += step.length;
        break;
      case InstructionKind::kCopy:
        if (from == at + done) result.fault = "copy from the same offset";
        if (ordered && from < at) result.fault = "copy from what is overwritten";
        [[fallthrough]];
      case InstructionKind::kSame: {
        if (from > basis.size() || step.length > basis.size() - from) {
          result.fault = "past the basis";
          return;
        }
        const auto begin = basis.begin() + static_cast<std::ptrdiff_t>(from);
        built.insert(built.end(), begin, begin + step.length);
        (step.kind == InstructionKind::kSame ? result.same : result.copied) += step.length;
        break;
      }
    }
    done += step.length;
  }
  if (done != range) result.fault = "lengths do not add up";
}

// Rebuilds `source` from `basis` with an index over `signature`.
inline Rebuilt rebuild_with(const RollingSignature& signature, Content basis, base::Bytes source,
                            const Job& job) {
  const StrongHash hash = make_hash(job.kind);
  const RollingIndex index(hash, signature);
  RollingMatcher matcher(hash, index, job.ordered);
  Rebuilt result;
  for (std::size_t at = 0; at < source.size(); at += job.range_bytes) {
    const std::size_t range = std::min(job.range_bytes, source.size() - at);
    const std::size_t seen = std::min<std::size_t>(range + index.block_bytes(), source.size() - at);
    const auto steps = matcher.match(source.subspan(at, seen), range, at);
    Content built;
    apply_range(steps, source, at, range, job.ordered, basis, built, result);
    if (!result.fault.empty()) return result;
    result.content.insert(result.content.end(), built.begin(), built.end());
    if (!job.ordered) continue;
    if (basis.size() < at + range) basis.resize(at + range);
    std::copy(built.begin(), built.end(), basis.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return result;
}

inline Rebuilt rebuild(const Content& basis, base::Bytes source, const Job& job = {}) {
  return rebuild_with(sign(make_hash(job.kind), basis, job.block_bytes), basis, source, job);
}

inline bool equal(const Content& content, base::Bytes other) {
  return std::equal(content.begin(), content.end(), other.begin(), other.end());
}

}  // namespace volferry::delta::testing
