// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/flow.h"

#include <utility>

#include "engine/transport/wire/limits.h"

namespace volferry::transport {

namespace {
constexpr std::uint64_t kMaxCharge = wire::kFrameCharge + wire::kMaxHead + wire::kMaxBody;
constexpr std::uint64_t kReturnParts = 8;
}  // namespace

bool ReceiveWindow::should_return() const {
  if (due_ == 0) return false;
  if (due_ >= window_ / kReturnParts) return true;
  return held_ == 0 && window_ - due_ < kMaxCharge;
}

std::uint64_t ReceiveWindow::take_due() {
  outstanding_ -= due_;
  return std::exchange(due_, 0);
}

}  // namespace volferry::transport
