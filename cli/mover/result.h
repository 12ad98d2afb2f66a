// SPDX-License-Identifier: Apache-2.0
// The mover's outcome: one JSON line for standard output and the termination message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/mover/identity.h"
#include "cli/mover/settings.h"

#include "engine/summary.h"

namespace volferry::cli::mover {

inline constexpr std::size_t kMaxResult = 4096;  // what Kubernetes keeps of a termination message
inline constexpr std::size_t kMaxMessage = 512;

struct Outcome {
  Role role = Role::kSource;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  Summary summary;
  // Of the transfer that this is the outcome of.
  std::uint64_t seq = 0;
  std::string attempt;
  std::string final_sync_id;
  std::optional<Identity> peer;
  std::uint64_t sessions = 0;  // that passed the identity check; 0: nothing was written
  std::string log_tail;        // escaped lines
};

// Whether the same run tried again could end better. Codes 0 and 4 need no other run.
bool may_retry(int exit_code);

// At most kMaxResult bytes, without a line end. Where it would be longer the log tail gives way,
// then the message.
std::string result_json(const Outcome& outcome);

// A refused peer, for who asks a mover that goes on listening.
std::string refusal_json(const Error& error);

}  // namespace volferry::cli::mover
