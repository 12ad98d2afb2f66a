// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/live_state.h"

#include "cli/json_output.h"

namespace volferry::cli::mover {

namespace {

// Bytes on the wire are left out: pings flow while nothing gets done.
bool got_further(const ProgressSnapshot& before, const ProgressSnapshot& now) {
  return before.phase != now.phase || before.total_known != now.total_known ||
         before.files_total != now.files_total || before.files_done != now.files_done ||
         before.bytes_total != now.bytes_total || before.bytes_done != now.bytes_done ||
         before.literal_bytes != now.literal_bytes || before.matched_bytes != now.matched_bytes ||
         before.zero_bytes != now.zero_bytes;
}

}  // namespace

void LiveState::add_counters(Totals& totals) const {
  const ProgressSnapshot& now = meter_.snapshot();
  totals.literal_bytes += now.literal_bytes;
  totals.matched_bytes += now.matched_bytes;
  totals.zero_bytes += now.zero_bytes;
  totals.wire_sent += now.wire_sent;
  totals.wire_received += now.wire_received;
}

void LiveState::begin_session() {
  const std::lock_guard lock(mutex_);
  add_counters(before_);
  ++before_.sessions;
  meter_ = ProgressMeter();
  in_session_ = true;
  changed_ = clock_();
}

void LiveState::end_session() {
  const std::lock_guard lock(mutex_);
  in_session_ = false;
}

void LiveState::refuse(const Error& error) {
  const std::lock_guard lock(mutex_);
  refused_ = error;
}

void LiveState::accept() {
  const std::lock_guard lock(mutex_);
  refused_.reset();
}

std::optional<Error> LiveState::refusal() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void LiveState::update(const ProgressSnapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_();
  if (!seen_ || got_further(meter_.snapshot(), snapshot)) changed_ = now;
  seen_ = true;
  meter_.update(snapshot, now);
}

LiveState::Totals LiveState::totals() const {
  const std::lock_guard lock(mutex_);
  Totals totals = before_;
  add_counters(totals);
  totals.now = meter_.snapshot();
  return totals;
}

std::optional<std::string> LiveState::progress() const {
  const std::lock_guard lock(mutex_);
  if (!seen_) return std::nullopt;
  return progress_json(meter_);
}

bool LiveState::healthy() const {
  const std::lock_guard lock(mutex_);
  return !in_session_ || clock_() - changed_ < kStuck;
}

}  // namespace volferry::cli::mover
