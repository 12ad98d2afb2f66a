// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace volferry {

// One item that could not be carried, was changing, or vanished. `path` has raw bytes, relative to
// the volume's root.
struct ItemError {
  std::string path;
  int os_errno = 0;
  std::string what;
  bool changed = false;  // the source item vanished or kept changing; otherwise it failed
};

// The outcome of one sync or verify.
struct Summary {
  std::uint64_t files_total = 0;
  std::uint64_t files_transferred = 0;
  std::uint64_t files_deleted = 0;
  std::uint64_t dirs_total = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t literal_bytes = 0;  // content that had to be sent (or, locally, written)
  std::uint64_t matched_bytes = 0;  // taken from what the destination had
  std::uint64_t zero_bytes = 0;     // holes and zeros, never sent
  std::uint64_t wire_sent = 0;      // by this end, all connections
  std::uint64_t wire_received = 0;
  std::uint64_t owner_skipped = 0;
  std::uint64_t differences = 0;  // verify
  std::uint64_t peak_buffers = 0;
  double elapsed_seconds = 0;
  double list_seconds = 0;  // until the whole list was merged
  unsigned streams = 0;
  unsigned reconnects = 0;
  std::string io;                   // "uring" or "threads"
  std::vector<ItemError> errors;    // the first kMaxErrors
  std::uint64_t error_count = 0;    // all of them
  std::uint64_t changed_count = 0;  // items that vanished or changed while read
  std::optional<Error> fatal;       // what ended the work early

  static constexpr std::size_t kMaxErrors = 1000;
  // The process exit code that this outcome means.
  int exit_code() const;
};

}  // namespace volferry
