// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/error.h"

namespace volferry::session {

// What one thread of several does with the part [begin, end) of a large file; `scratch` is its own.
using SegmentWork =
    std::function<Status(std::uint64_t begin, std::uint64_t end, std::uint8_t* scratch)>;

// Calls `work` for all of [0, size) in segments, on up to `threads` threads, the calling one
// included; content below two segments stays on that one. `scratch_bytes`: the size of each
// thread's scratch block. No new segment is begun after an error, and the first one is returned.
Status for_each_segment(unsigned threads, std::uint64_t size, std::size_t scratch_bytes,
                        const SegmentWork& work);

}  // namespace volferry::session
