// SPDX-License-Identifier: Apache-2.0
#include "engine/session/monitor.h"

#include <chrono>
#include <utility>

namespace volferry::session {

Monitor::Monitor(Tally& tally, std::atomic<int>& stop, std::function<void(const Error&)> on_stop,
                 std::function<void(ProgressSnapshot::Phase)> on_progress)
    : tally_(tally),
      stop_(stop),
      on_stop_(std::move(on_stop)),
      on_progress_(std::move(on_progress)),
      thread_([this] { run(); }) {}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Monitor::run() {
  bool told = false;
  for (int tick = 0;; ++tick) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(100), [&] { return done_; });
      if (done_) return;
    }
    const int wanted = stop_.load();
    if (wanted != 0 && !tally_.stopped()) {
      const Code code =
          wanted == exit_code(Code::kInterrupted) ? Code::kInterrupted : Code::kTerminated;
      tally_.fail({code, 0, code == Code::kInterrupted ? "interrupted" : "terminated"});
    }
    if (tally_.stopped() && !std::exchange(told, true)) on_stop_(*tally_.fatal());
    if (tick % 2 == 1) on_progress_(phase_.load());
  }
}

}  // namespace volferry::session
