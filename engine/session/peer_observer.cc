// SPDX-License-Identifier: Apache-2.0
#include "engine/session/peer_observer.h"

namespace volferry::session {

void PeerObserver::report(wire::ReportKind kind, const ItemError& item) {
  (void)channel_.send(
      wire::make_frame(wire::ItemReport{kind, item.path, item.os_errno, item.what}));
}

void PeerObserver::on_change(const ItemChangeEvent& event) {
  (void)channel_.send(
      wire::make_frame(wire::ItemChange{event.code, event.path, event.link_target}));
  local_.on_change(event);
}

void PeerObserver::on_error(const ItemError& error) {
  report(error.changed ? wire::ReportKind::kChangedSource : wire::ReportKind::kError, error);
  local_.on_error(error);
}

void PeerObserver::on_warning(const ItemError& warning) {
  report(wire::ReportKind::kWarning, warning);
  local_.on_warning(warning);
}

void PeerObserver::on_difference(const DifferenceEvent& event) {
  std::string kinds;
  for (const std::string& kind : event.kinds) kinds += (kinds.empty() ? "" : ",") + kind;
  report(wire::ReportKind::kDifference, {event.path, 0, kinds});
  local_.on_difference(event);
}

void PeerObserver::on_progress(const ProgressSnapshot& snapshot) {
  wire::Progress progress;
  progress.phase = static_cast<std::uint8_t>(snapshot.phase);
  progress.files_total = snapshot.files_total;
  progress.files_done = snapshot.files_done;
  progress.bytes_total = snapshot.bytes_total;
  progress.bytes_done = snapshot.bytes_done;
  (void)channel_.send(wire::make_frame(progress));
  local_.on_progress(snapshot);
}

}  // namespace volferry::session
