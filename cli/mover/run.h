// SPDX-License-Identifier: Apache-2.0
// The two roles. Each runs one transfer to its end.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "cli/mover/identity.h"
#include "cli/mover/live_state.h"
#include "cli/mover/settings.h"

#include "engine/sync.h"

namespace volferry::cli::mover {

// The last peer that was let in to the identity check, and how many passed it. Thread-safe.
class PeerRecord {
 public:
  void set(std::optional<Identity> peer);
  std::optional<Identity> get() const;
  // Called before anything of the session is written.
  void count_session();
  std::uint64_t sessions() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Identity> peer_;
  std::uint64_t sessions_ = 0;
};

// What a run works with. Everything outlives it.
struct RunParts {
  const Settings& settings;  // options.identity holds the own tuple
  const std::string& volume;
  const Identity& identity;
  std::vector<transport::PskEntry>& keys;
  Observer& observer;
  base::Logger& logger;
  LiveState& live;
  PeerRecord& peer;
  StopFlag& stop;
};

// The engine's hook: reads the peer's tuple, keeps it for the result, and applies the checks.
PeerCheck peer_check(const RunParts& parts);

// Connects, tried again until the connect timeout has passed, and pushes once.
Summary run_source(const RunParts& parts);

// Listens until a transfer has completed, or cannot for a reason that lies in this volume.
// `listening` is told the address.
Summary run_destination(const RunParts& parts,
                        const std::function<void(const std::string&)>& listening);

}  // namespace volferry::cli::mover
