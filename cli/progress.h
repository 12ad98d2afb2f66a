// SPDX-License-Identifier: Apache-2.0
// How far the work is: rate and remaining time from the engine's snapshots, and the bar that shows
// them.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "cli/console.h"

#include "engine/observer.h"

namespace volferry::cli {

using TimePoint = std::chrono::steady_clock::time_point;
using Clock = std::function<TimePoint()>;

// "connect", "sync", "delete", "verify", "flush".
std::string_view phase_name(ProgressSnapshot::Phase phase);

// Pure: times come from the caller. Not thread-safe.
class ProgressMeter {
 public:
  // Rates are means over the last kWindow.
  static constexpr std::chrono::seconds kWindow{5};

  // `now` never goes back. A new phase, or counters that went back, start the window anew.
  void update(const ProgressSnapshot& snapshot, TimePoint now);
  const ProgressSnapshot& snapshot() const { return snapshot_; }
  double bytes_per_second() const;
  double files_per_second() const;
  // Of the phase; nothing while the total or the rate is unknown. By bytes, or by files where those
  // would take longer (small files cost time that their bytes do not show).
  std::optional<std::chrono::seconds> remaining() const;
  // One line of at most `columns` ASCII characters, the less important parts left out where it is
  // narrow.
  std::string render(std::size_t columns) const;

 private:
  struct Sample {
    TimePoint time;
    std::uint64_t bytes = 0;
    std::uint64_t files = 0;
  };
  double window_seconds() const;

  ProgressSnapshot snapshot_;
  std::deque<Sample> samples_;
};

// Draws on the console: on a terminal a status line at most five times a second; elsewhere, where
// it is forced on, a plain line a second. Not thread-safe.
class ProgressBar {
 public:
  static constexpr std::chrono::milliseconds kRedraw{200};
  static constexpr std::chrono::milliseconds kPlainInterval{1000};

  // The console outlives the bar.
  ProgressBar(Console& console, When when, Clock clock);
  void update(const ProgressSnapshot& snapshot);
  // Removes the bar; later updates draw it again.
  void clear() { console_.clear_status(); }

 private:
  enum class Mode { kOff, kBar, kLines };
  Console& console_;
  Clock clock_;
  Mode mode_;
  ProgressMeter meter_;
  std::optional<TimePoint> drawn_;
};

}  // namespace volferry::cli
