// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "engine/base/check.h"

namespace volferry::transport {

namespace {

// Poll's timeout: rounded up, so that a deadline has passed once poll says so. -1: none.
int poll_timeout(Clock::time_point deadline, bool sliced) {
  if (deadline == Clock::time_point::max()) {
    return sliced ? static_cast<int>(kWaitSlice.count()) : -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  const auto most = sliced ? kWaitSlice.count() : std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, most));
}

}  // namespace

StopEvent::StopEvent() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  VF_CHECK(fd_, "no eventfd");
}

void StopEvent::set() {
  if (set_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  (void)!::write(fd_.get(), &one, sizeof one);
}

Status wait_for(int fd, short events, const StopEvent& stop, const Wait& wait) {
  const bool sliced = wait.cancel != nullptr || wait.moving_deadline != nullptr;
  for (;;) {
    Clock::time_point deadline = wait.deadline;
    if (wait.moving_deadline != nullptr) {
      deadline = std::min(deadline, wait.moving_deadline->load(std::memory_order_acquire));
    }
    if (stop.is_set() || (wait.cancel != nullptr && wait.cancel->load())) {
      return fail_with(Code::kCancelled, "stopped");
    }
    pollfd fds[2] = {{fd, events, 0}, {stop.fd(), POLLIN, 0}};
    const int ready = ::poll(fds, 2, poll_timeout(deadline, sliced));
    if (ready < 0 && errno != EINTR) return fail_sys("poll");
    if (ready > 0 && fds[1].revents != 0) return fail_with(Code::kCancelled, "stopped");
    if (ready > 0 && fds[0].revents != 0) return {};
    if (Clock::now() >= deadline) return fail_with(Code::kTimeout, "timed out");
  }
}

}  // namespace volferry::transport
