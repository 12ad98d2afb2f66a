// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "engine/options.h"
#include "engine/transport/channel.h"
#include "engine/transport/wire/compression.h"

namespace volferry::session {

// Compresses and decompresses frame bodies for one session, under its policy. Thread-safe: contexts
// are lent out.
class BodyCoder {
 public:
  BodyCoder(CompressChoice choice, int level) : choice_(choice), level_(level) {}

  // Replaces `body` by its compressed form where the policy says so and it is smaller; true then.
  bool compress(base::Buffer& body);
  // The `raw_bytes` that a compressed body stands for, in a buffer of `pool` if it is large.
  Result<base::Buffer> decompress(const base::Buffer& body, std::uint32_t raw_bytes);

  // Learns from the channel's counters how fast the link is. Called now and then by senders.
  void observe_link(const transport::ChannelStats& stats);

 private:
  std::unique_ptr<wire::Compressor> borrow();
  void give_back(std::unique_ptr<wire::Compressor> compressor);

  const CompressChoice choice_;
  const int level_;
  wire::CompressionGauge gauge_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<wire::Compressor>> idle_;
  std::uint64_t last_written_ = 0;
  std::chrono::nanoseconds last_writing_{0};
};

}  // namespace volferry::session
