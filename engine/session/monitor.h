// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/session/tally.h"

namespace volferry::session {

// A thread that looks around ten times a second: it turns the program's stop flag into the
// session's end, calls `on_stop` once when the session has been stopped for whatever reason (so
// that everybody who waits is woken), and reports progress. Runs from construction to destruction.
class Monitor {
 public:
  Monitor(Tally& tally, std::atomic<int>& stop, std::function<void(const Error&)> on_stop,
          std::function<void(ProgressSnapshot::Phase)> on_progress);
  ~Monitor();
  void set_phase(ProgressSnapshot::Phase phase) { phase_.store(phase); }

 private:
  void run();

  Tally& tally_;
  std::atomic<int>& stop_;
  std::function<void(const Error&)> on_stop_;
  std::function<void(ProgressSnapshot::Phase)> on_progress_;
  std::atomic<ProgressSnapshot::Phase> phase_{ProgressSnapshot::Phase::kConnect};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace volferry::session
