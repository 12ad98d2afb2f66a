// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/mover/run.h"

namespace volferry::cli::mover {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// One try: long enough for a slow link, short enough to notice that a name leads elsewhere by now.
constexpr milliseconds kTry{10'000};
constexpr milliseconds kFirstPause{250};
constexpr milliseconds kLongestPause{2'000};

// Sleeps in small steps; false once the program is told to stop.
bool pause_for(milliseconds time, StopFlag& stop) {
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end) {
    if (stop.load() != 0) return false;
    std::this_thread::sleep_for(milliseconds(50));
  }
  return stop.load() == 0;
}

TlsEndpoint endpoint(const RunParts& parts) {
  TlsEndpoint endpoint;
  endpoint.target = {parts.settings.address, parts.settings.port};
  endpoint.credentials.psk_identity = parts.keys.front().identity;
  endpoint.credentials.psk = parts.keys.front().key;
  return endpoint;
}

}  // namespace

Summary run_source(const RunParts& parts) {
  const Endpoint source = LocalEndpoint{parts.volume};
  const Endpoint destination = endpoint(parts);
  SyncOptions options = parts.settings.options;
  options.check_peer = peer_check(parts);
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + parts.settings.options.connect_timeout;
  std::string told;
  for (milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    options.connect_timeout = std::clamp(left, milliseconds(100), kTry);
    Summary summary =
        run_sync(source, destination, options, parts.observer, parts.logger, parts.stop);
    parts.live.end_session();
    summary.elapsed_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    // After there was a session the code is another one, and its retries are spent.
    const bool unreached = summary.fatal && summary.fatal->code == Code::kConnect;
    if (!unreached || Clock::now() + pause >= deadline) return summary;
    // Once for each reason: the destination may need a while to come up.
    const std::string why = summary.fatal->message();
    parts.logger.log(why == told ? base::LogLevel::kDebug : base::LogLevel::kWarn,
                     "not connected yet, trying again: " + why);
    told = why;
    if (!pause_for(pause, parts.stop)) {
      const Code code = parts.stop.load() == exit_code(Code::kInterrupted) ? Code::kInterrupted
                                                                           : Code::kTerminated;
      summary.fatal = Error{code, 0, "stopped while connecting; the last try: " + why};
      return summary;
    }
  }
}

}  // namespace volferry::cli::mover
