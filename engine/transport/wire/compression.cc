// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/compression.h"

#include <zstd.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/transport/wire/limits.h"

namespace volferry::wire {

namespace {

constexpr int kWindowLog = 20;  // kMaxBody
static_assert((std::size_t{1} << kWindowLog) == kMaxBody);

// A gain below this is not worth the receiver's time either.
constexpr double kUsefulRatio = 0.9;
constexpr double kSmoothing = 0.25;
// So many times faster than the link compressing has to be: both ends need their CPUs for the
// cipher and the files too, and on a link that is nearly as fast what is saved on it is lost there.
constexpr double kNeededLead = 3;

struct FreeCctx {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDctx {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

double smoothed(double old, double sample) {
  return old == 0 ? sample : old + kSmoothing * (sample - old);
}

}  // namespace

struct Compressor::Contexts {
  std::unique_ptr<ZSTD_CCtx, FreeCctx> compress;
  std::unique_ptr<ZSTD_DCtx, FreeDctx> decompress;
};

Compressor::Compressor() : contexts_(std::make_unique<Contexts>()) {}
Compressor::~Compressor() = default;

base::Buffer Compressor::compress(base::Bytes raw, int level) {
  VF_CHECK(raw.size() <= kMaxBody, "body too large");
  if (raw.size() < 2) return {};
  if (!contexts_->compress) contexts_->compress.reset(ZSTD_createCCtx());
  VF_CHECK(contexts_->compress != nullptr, "out of memory");
  // One byte less than the input as capacity: zstd then gives up as soon as it cannot win.
  base::Buffer out = base::Buffer::heap(raw.size() - 1);
  const std::size_t size =
      ZSTD_compressCCtx(contexts_->compress.get(), out.data(), out.capacity(), raw.data(),
                        raw.size(), level == 0 ? kDefaultCompressLevel : level);
  if (ZSTD_isError(size)) return {};
  out.set_size(size);
  return out;
}

Status Compressor::decompress(base::Bytes packed, base::MutBytes out) {
  if (!contexts_->decompress) {
    contexts_->decompress.reset(ZSTD_createDCtx());
    VF_CHECK(contexts_->decompress != nullptr, "out of memory");
    (void)ZSTD_DCtx_setParameter(contexts_->decompress.get(), ZSTD_d_windowLogMax, kWindowLog);
  }
  const unsigned long long announced = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (announced != ZSTD_CONTENTSIZE_UNKNOWN && announced != out.size()) {
    return fail_with(Code::kProtocol, "compressed body of another size than announced");
  }
  const std::size_t size = ZSTD_decompressDCtx(contexts_->decompress.get(), out.data(), out.size(),
                                               packed.data(), packed.size());
  if (ZSTD_isError(size)) {
    return fail_with(Code::kProtocol,
                     std::string("damaged compressed body: ") + ZSTD_getErrorName(size));
  }
  if (size != out.size()) {
    return fail_with(Code::kProtocol, "compressed body shorter than announced");
  }
  return {};
}

bool CompressionGauge::pays() const {
  if (ratio_ == 0) return true;
  if (ratio_ > kUsefulRatio) return false;
  if (link_ == 0 || speed_ == 0) return true;
  return speed_ > kNeededLead * link_;
}

bool CompressionGauge::worth_trying() {
  const std::lock_guard lock(mutex_);
  if (pays()) return true;
  if (++skipped_ < kProbeEvery) return false;
  skipped_ = 0;
  return true;
}

void CompressionGauge::record(std::uint64_t raw_bytes, std::uint64_t packed_bytes, double seconds) {
  if (raw_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  ratio_ = smoothed(ratio_, static_cast<double>(packed_bytes) / static_cast<double>(raw_bytes));
  if (seconds > 0) speed_ = smoothed(speed_, static_cast<double>(raw_bytes) / seconds);
}

void CompressionGauge::set_link_speed(double bytes_per_second) {
  const std::lock_guard lock(mutex_);
  link_ = bytes_per_second;
}

}  // namespace volferry::wire
