// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/units.h"

namespace volferry::cli {

namespace {

constexpr std::size_t kMaxBar = 30;
constexpr std::size_t kMinBar = 8;
// Samples closer together add nothing to a mean over seconds.
constexpr std::chrono::milliseconds kSampleSpacing{50};

double fraction_done(const ProgressSnapshot& snapshot) {
  const auto share = [](std::uint64_t done, std::uint64_t total) {
    return std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  };
  if (snapshot.bytes_total > 0) return share(snapshot.bytes_done, snapshot.bytes_total);
  if (snapshot.files_total > 0) return share(snapshot.files_done, snapshot.files_total);
  return 0;
}

// With a space before it.
std::string bar(double fraction, std::size_t width) {
  const auto full = static_cast<std::size_t>(fraction * static_cast<double>(width));
  return fmt::format(" [{:#>{}}{:.>{}}]", "", full, "", width - full);
}

}  // namespace

std::string_view phase_name(ProgressSnapshot::Phase phase) {
  static constexpr std::array<std::string_view, 5> kNames = {"connect", "sync", "delete", "verify",
                                                             "flush"};
  return kNames[static_cast<std::size_t>(phase)];
}

void ProgressMeter::update(const ProgressSnapshot& snapshot, TimePoint now) {
  const bool anew = samples_.empty() || snapshot.phase != snapshot_.phase ||
                    snapshot.bytes_done < snapshot_.bytes_done ||
                    snapshot.files_done < snapshot_.files_done;
  if (anew) samples_.clear();
  snapshot_ = snapshot;
  // The last sample is always the newest state; the one before it keeps the spacing.
  if (samples_.size() >= 2 && now - samples_[samples_.size() - 2].time < kSampleSpacing)
    samples_.pop_back();
  samples_.push_back({now, snapshot.bytes_done, snapshot.files_done});
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

double ProgressMeter::window_seconds() const {
  if (samples_.size() < 2) return 0;
  return std::chrono::duration<double>(samples_.back().time - samples_.front().time).count();
}

double ProgressMeter::bytes_per_second() const {
  const double seconds = window_seconds();
  if (seconds <= 0) return 0;
  return static_cast<double>(samples_.back().bytes - samples_.front().bytes) / seconds;
}

double ProgressMeter::files_per_second() const {
  const double seconds = window_seconds();
  if (seconds <= 0) return 0;
  return static_cast<double>(samples_.back().files - samples_.front().files) / seconds;
}

std::optional<std::chrono::seconds> ProgressMeter::remaining() const {
  if (!snapshot_.total_known) return std::nullopt;
  const auto left = [](std::uint64_t done, std::uint64_t total, double rate) {
    if (done >= total) return 0.0;
    return rate > 0 ? static_cast<double>(total - done) / rate : HUGE_VAL;
  };
  const double by_bytes = left(snapshot_.bytes_done, snapshot_.bytes_total, bytes_per_second());
  const double by_files = left(snapshot_.files_done, snapshot_.files_total, files_per_second());
  // One large file at work: files stand still, bytes tell.
  const double seconds = std::isinf(by_files) ? by_bytes : std::max(by_bytes, by_files);
  if (std::isinf(seconds)) return std::nullopt;
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e9))));
}

std::string ProgressMeter::render(std::size_t columns) const {
  const ProgressSnapshot& now = snapshot_;
  if (now.phase == ProgressSnapshot::Phase::kConnect)
    return std::string("connect ...").substr(0, columns);
  const std::string phase(phase_name(now.phase));
  // A total that still grows is marked so.
  const std::string more = now.total_known ? "" : "+";
  const std::string bytes = fmt::format("  {} of {}{}", format_bytes(now.bytes_done),
                                        format_bytes(now.bytes_total), more);
  const std::string files = fmt::format("  {}/{}{} files", format_count(now.files_done),
                                        format_count(now.files_total), more);
  const std::string rate = "  " + format_rate(bytes_per_second());
  const auto left = remaining();
  const std::string eta = left ? "  ETA " + format_clock(*left) : "";
  const std::string percent =
      now.total_known ? fmt::format(" {:3} %", static_cast<int>(fraction_done(now) * 100)) : "";

  // Parts by importance; each is taken while it fits, and shown in this order.
  std::string line = phase + percent;
  for (const std::string* part : {&bytes, &rate, &eta, &files})
    if (line.size() + part->size() <= columns) line += *part;
  if (now.total_known && line.size() + kMinBar + 3 <= columns) {
    const std::size_t width = std::min(kMaxBar, columns - line.size() - 3);
    line.insert(phase.size(), bar(fraction_done(now), width));
  }
  return line.substr(0, columns);
}

ProgressBar::ProgressBar(Console& console, When when, Clock clock)
    : console_(console), clock_(std::move(clock)), mode_(Mode::kOff) {
  if (when == When::kOff) return;
  if (console.err_terminal())
    mode_ = Mode::kBar;
  else if (when == When::kOn)
    mode_ = Mode::kLines;
}

void ProgressBar::update(const ProgressSnapshot& snapshot) {
  if (mode_ == Mode::kOff) return;
  const TimePoint now = clock_();
  meter_.update(snapshot, now);
  const std::chrono::milliseconds interval = mode_ == Mode::kBar ? kRedraw : kPlainInterval;
  if (drawn_ && now - *drawn_ < interval) return;
  drawn_ = now;
  // The last column stays free: some terminals wrap when it is written.
  const std::string line = meter_.render(std::max<std::size_t>(console_.columns(), 20) - 1);
  if (mode_ == Mode::kBar)
    console_.set_status(line);
  else
    console_.err(line);
}

}  // namespace volferry::cli
