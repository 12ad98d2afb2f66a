// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/observer.h"
#include "engine/transport/channel.h"

namespace volferry::session {

// The server's observer: tells the client what happens, and the server's own observer too.
class PeerObserver final : public Observer {
 public:
  PeerObserver(transport::Channel& channel, Observer& local) : channel_(channel), local_(local) {}
  void on_change(const ItemChangeEvent& event) override;
  void on_error(const ItemError& error) override;
  void on_warning(const ItemError& warning) override;
  void on_difference(const DifferenceEvent& event) override;
  void on_progress(const ProgressSnapshot& snapshot) override;

 private:
  void report(wire::ReportKind kind, const ItemError& item);
  transport::Channel& channel_;
  Observer& local_;
};

}  // namespace volferry::session
