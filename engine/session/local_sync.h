// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/sync.h"

namespace volferry::session {

// Both ends on this machine.
Summary run_local(const std::string& source, const std::string& destination,
                  const SyncOptions& options, bool verify_only, Observer& observer,
                  base::Logger& logger, StopFlag& stop);

}  // namespace volferry::session
