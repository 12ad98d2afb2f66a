// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/end_guard.h"

#include <optional>
#include <utility>

namespace volferry::cli::mover {

EndGuard::EndGuard(StopFlag& stop, std::chrono::milliseconds limit,
                   std::function<void(bool)> overdue)
    : stop_(stop), limit_(limit), overdue_(std::move(overdue)), thread_([this] { run(); }) {}

EndGuard::~EndGuard() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void EndGuard::run() {
  // A signal handler can set nothing but the flag, so it is looked at now and then.
  constexpr std::chrono::milliseconds kLook{100};
  const Clock::time_point begin = Clock::now();
  std::optional<Clock::time_point> stopped;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [&] { return over_; })) {
    const Clock::time_point now = Clock::now();
    if (limit_.count() > 0 && now - begin >= limit_) {
      int running = 0;
      if (stop_.compare_exchange_strong(running, exit_code(Code::kTerminated))) timed_out_ = true;
    }
    if (stop_.load() == 0) continue;
    if (!stopped) stopped = now;
    if (now - *stopped < kGrace) continue;
    lock.unlock();
    overdue_(timed_out_.load());
    return;
  }
}

}  // namespace volferry::cli::mover
