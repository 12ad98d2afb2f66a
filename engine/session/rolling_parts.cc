// SPDX-License-Identifier: Apache-2.0
#include "engine/session/rolling_parts.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "engine/delta/geometry.h"
#include "engine/io/file.h"
#include "engine/session/segments.h"

namespace volferry::session {

Result<std::vector<delta::RollingSignature>> rolling_parts(const delta::StrongHash& hash, int fd,
                                                           const RollingPiece& piece,
                                                           unsigned threads) {
  struct Part {
    delta::RollingSignature signature;
    bool whole = true;
  };
  std::mutex mutex;
  std::map<std::uint64_t, Part> parts;
  VF_TRY(for_each_segment(
      threads, piece.length, delta::kRangeBytes,
      [&](std::uint64_t begin, std::uint64_t end, std::uint8_t* scratch) -> Status {
        Part part;
        part.signature.block_bytes = piece.block_bytes;
        for (std::uint64_t at = begin; at < end && part.whole; at += delta::kRangeBytes) {
          const std::uint64_t length = std::min(delta::kRangeBytes, end - at);
          VF_ASSIGN(const std::size_t got, io::read_full(fd, scratch, length, piece.offset + at));
          delta::append_signature(hash, {scratch, got}, part.signature);
          part.whole = got == length;
        }
        const std::lock_guard lock(mutex);
        parts.emplace(begin, std::move(part));
        return {};
      }));
  std::vector<delta::RollingSignature> ordered;
  for (auto& [begin, part] : parts) {
    ordered.push_back(std::move(part.signature));
    if (!part.whole) break;  // what follows would stand at the wrong place
  }
  return ordered;
}

}  // namespace volferry::session
