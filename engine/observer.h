// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/summary.h"

namespace volferry {

struct ProgressSnapshot {
  enum class Phase : std::uint8_t { kConnect, kSync, kDelete, kVerify, kFlush };
  Phase phase = Phase::kConnect;
  bool total_known = false;  // the source has been listed to the end
  std::uint64_t files_total = 0;
  std::uint64_t files_done = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_done = 0;  // completed at the destination, unchanged content included
  // As in Summary, so far. The first three are the destination's: a source learns them at the end.
  std::uint64_t literal_bytes = 0;
  std::uint64_t matched_bytes = 0;
  std::uint64_t zero_bytes = 0;
  std::uint64_t wire_sent = 0;
  std::uint64_t wire_received = 0;
};

// One itemized change: rsync's 11 characters, or "*deleting".
struct ItemChangeEvent {
  std::string code;
  std::string path;         // raw bytes; directories end in '/'
  std::string link_target;  // symlinks, and the first name of a hard link
};

struct DifferenceEvent {
  std::string path;
  std::vector<std::string> kinds;  // "content", "mtime", "missing", ...
};

// Called from engine threads, one call at a time. Must not block for long.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_change(const ItemChangeEvent& /*event*/) {}
  virtual void on_error(const ItemError& /*error*/) {}
  virtual void on_warning(const ItemError& /*warning*/) {}
  virtual void on_difference(const DifferenceEvent& /*event*/) {}
  virtual void on_progress(const ProgressSnapshot& /*snapshot*/) {}
};

}  // namespace volferry
