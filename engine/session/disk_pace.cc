// SPDX-License-Identifier: Apache-2.0
#include "engine/session/disk_pace.h"

namespace volferry::session {

void DiskPace::begin(Clock::time_point now) {
  if (durable_) return;
  const std::lock_guard lock(mutex_);
  if (in_flight_++ == 0) since_ = now;
}

void DiskPace::end(std::uint64_t bytes, Clock::time_point now) {
  if (durable_) return;
  const std::lock_guard lock(mutex_);
  busy_ += now - since_;
  since_ = now;
  --in_flight_;
  written_ += bytes;
  if (written_ < kWindow) return;
  const double seconds = std::chrono::duration<double>(busy_).count();
  if (static_cast<double>(written_) < kBytesPerSecond * seconds) worth_it_ = false;
  written_ = 0;
  busy_ = {};
}

}  // namespace volferry::session
