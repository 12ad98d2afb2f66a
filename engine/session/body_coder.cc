// SPDX-License-Identifier: Apache-2.0
#include "engine/session/body_coder.h"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace volferry::session {

namespace {
// Below this a frame's own cost outweighs what compression could save.
constexpr std::size_t kMinBodyBytes = 256;
// The link is judged by so much at least: more than a socket takes in before the link has to show
// its speed, or a good while on a slow one.
constexpr std::uint64_t kLinkSampleBytes = 8u << 20;
constexpr auto kLinkSampleTime = std::chrono::milliseconds(50);

double thread_cpu_seconds() {
  struct timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
}  // namespace

std::unique_ptr<wire::Compressor> BodyCoder::borrow() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<wire::Compressor>();
  auto compressor = std::move(idle_.back());
  idle_.pop_back();
  return compressor;
}

void BodyCoder::give_back(std::unique_ptr<wire::Compressor> compressor) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(compressor));
}

bool BodyCoder::compress(base::Buffer& body) {
  if (choice_ == CompressChoice::kOff || body.size() < kMinBodyBytes) return false;
  const bool automatic = choice_ == CompressChoice::kAuto;
  if (automatic && !gauge_.worth_trying()) return false;
  auto compressor = borrow();
  const double begin = thread_cpu_seconds();
  base::Buffer packed = compressor->compress(body.bytes(), level_);
  if (automatic) {
    gauge_.record(body.size(), packed.empty() ? body.size() : packed.size(),
                  thread_cpu_seconds() - begin);
  }
  give_back(std::move(compressor));
  // Less than a sixteenth saved is not worth the receiver's work.
  if (packed.empty() || packed.size() > body.size() - body.size() / 16) return false;
  body = std::move(packed);
  return true;
}

Result<base::Buffer> BodyCoder::decompress(const base::Buffer& body, std::uint32_t raw_bytes) {
  base::Buffer raw = base::Buffer::heap(raw_bytes);
  raw.set_size(raw_bytes);
  auto compressor = borrow();
  const Status done = compressor->decompress(body.bytes(), {raw.data(), raw_bytes});
  give_back(std::move(compressor));
  if (!done) return std::unexpected(done.error());
  return raw;
}

void BodyCoder::observe_link(const transport::ChannelStats& stats) {
  if (choice_ != CompressChoice::kAuto) return;
  const std::lock_guard lock(mutex_);
  // Time that nothing was written in says nothing of the link: compressing itself may be what holds
  // the data up.
  const auto spent = stats.writing - last_writing_;
  const std::uint64_t written = stats.written - last_written_;
  if (written < kLinkSampleBytes && spent < kLinkSampleTime) return;
  const double seconds = std::chrono::duration<double>(spent).count() / stats.streams;
  gauge_.set_link_speed(static_cast<double>(written) / std::max(seconds, 1e-6));
  last_written_ = stats.written;
  last_writing_ = stats.writing;
}

}  // namespace volferry::session
