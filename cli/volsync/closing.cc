// SPDX-License-Identifier: Apache-2.0
#include "cli/volsync/closing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace volferry::cli::volsync {

namespace {

double per(std::uint64_t bytes, double by) {
  return by > 0 ? static_cast<double>(bytes) / by : 0.0;
}

}  // namespace

std::string closing_lines(const mover::Outcome& outcome) {
  const Summary& summary = outcome.summary;
  if (summary.exit_code() != 0) return {};
  const std::uint64_t wire = summary.wire_sent + summary.wire_received;
  // VolSync runs another program for each kind of volume.
  const bool device = outcome.volume_mode == mover::VolumeMode::kBlock;
  return fmt::format(
      "sent {} bytes  received {} bytes  {:.2f} bytes/sec\n"
      "total size is {}  speedup is {:.2f}\n"
      "{} completed in {:.0f}s\n",
      summary.wire_sent, summary.wire_received, per(wire, summary.elapsed_seconds),
      summary.bytes_total, per(summary.bytes_total, static_cast<double>(wire)),
      device ? "diskrsync" : "rsync", std::ceil(summary.elapsed_seconds));
}

}  // namespace volferry::cli::volsync
