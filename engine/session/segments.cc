// SPDX-License-Identifier: Apache-2.0
#include "engine/session/segments.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/buffer.h"

namespace volferry::session {

namespace {
// Read ahead by the kernel as one stream, and large enough that starting a thread does not show.
constexpr std::uint64_t kSegmentBytes = 16u << 20;
}  // namespace

Status for_each_segment(unsigned threads, std::uint64_t size, std::size_t scratch_bytes,
                        const SegmentWork& work) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status result;
  const auto run = [&] {
    base::Buffer scratch = base::Buffer::heap(scratch_bytes);
    while (!failed.load()) {
      const std::uint64_t begin = next.fetch_add(kSegmentBytes);
      if (begin >= size) return;
      Status done = work(begin, std::min(begin + kSegmentBytes, size), scratch.data());
      if (done) continue;
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) result = std::move(done);
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads && i < size / kSegmentBytes; ++i) others.emplace_back(run);
    run();
  }
  return result;
}

}  // namespace volferry::session
