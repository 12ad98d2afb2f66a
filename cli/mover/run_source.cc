// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/mover/result.h"
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

Summary stopped(const RunParts& parts, Summary last, std::string_view while_doing) {
  const std::string why = last.fatal ? last.fatal->message() : "some items failed";
  const Code code =
      parts.stop.load() == exit_code(Code::kInterrupted) ? Code::kInterrupted : Code::kTerminated;
  last.fatal = Error{code, 0, fmt::format("stopped while {}; the last try: {}", while_doing, why)};
  return last;
}

// One run, after it was connected to at last.
Summary run_once(const RunParts& parts) {
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
    if (!pause_for(pause, parts.stop)) return stopped(parts, std::move(summary), "connecting");
  }
}

// Whether a run like this one might end better.
bool unfinished(const RunParts& parts, int code) {
  if (code == exit_code(Code::kSourceChanged)) return parts.settings.whole_only;
  return parts.stop.load() == 0 && may_retry(code);
}

}  // namespace

Summary run_source(const RunParts& parts) {
  Summary summary = run_once(parts);
  for (const std::chrono::seconds pause : parts.settings.pauses) {
    const int code = summary.exit_code();
    if (!unfinished(parts, code)) break;
    parts.logger.log(
        base::LogLevel::kWarn,
        fmt::format("not complete, exit code {}: once more in {} s{}{}", code, pause.count(),
                    summary.fatal ? ": " : "", summary.fatal ? summary.fatal->message() : ""));
    if (!pause_for(pause, parts.stop)) return stopped(parts, std::move(summary), "waiting");
    summary = run_once(parts);
  }
  return summary;
}

}  // namespace volferry::cli::mover
