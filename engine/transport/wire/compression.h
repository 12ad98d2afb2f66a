// SPDX-License-Identifier: Apache-2.0
// Compression of frame bodies by zstd, and the decision whether it pays.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/base/buffer.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

namespace volferry::wire {

// What level 0 means: 4.2x at 494 MB/s on log text, where level 3 gives 4.0x at 293 MB/s (one core
// of a 2-core Xeon VM).
inline constexpr int kDefaultCompressLevel = 1;

// Compresses and decompresses bodies with contexts that are kept from call to call. One thread at a
// time.
class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  // One zstd frame of `raw` (at most kMaxBody bytes) in a heap buffer, or an empty buffer where it
  // would not be smaller than `raw`. `level` -100 .. 22, 0: kDefaultCompressLevel.
  base::Buffer compress(base::Bytes raw, int level);

  // Fills `out` from one zstd frame. kProtocol unless that gives exactly `out.size()` bytes; never
  // writes past it. Takes memory for a window of at most kMaxBody, whatever the frame asks for.
  Status decompress(base::Bytes packed, base::MutBytes out);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

// Decides for `--compress auto` whether a body should be compressed: it remembers how well recent
// bodies shrank and how fast, and compares that with the link. While it does not pay, one body in
// `kProbeEvery` is tried again. Thread-safe.
class CompressionGauge {
 public:
  static constexpr unsigned kProbeEvery = 32;

  // True: compress the next body (and report it by `record`).
  bool worth_trying();
  // `packed_bytes` equals `raw_bytes` where compressing did not help. `seconds`: CPU time that it
  // took.
  void record(std::uint64_t raw_bytes, std::uint64_t packed_bytes, double seconds);
  // The link's speed as the sender sees it, bytes a second; 0: not known (then anything that
  // shrinks by a tenth counts as worth it).
  void set_link_speed(double bytes_per_second);

 private:
  bool pays() const;

  mutable std::mutex mutex_;
  double ratio_ = 0;  // packed / raw, smoothed; 0: no sample yet
  double speed_ = 0;  // raw bytes compressed a second, smoothed
  double link_ = 0;
  unsigned skipped_ = 0;
};

}  // namespace volferry::wire
