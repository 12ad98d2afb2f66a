// SPDX-License-Identifier: Apache-2.0
// The two ends as found on disk: what they are, whether they fit each other, and that nobody else
// is writing there.
#pragma once

#include <chrono>
#include <string>

#include "engine/base/unique_fd.h"
#include "engine/io/metadata.h"
#include "engine/transport/wire/messages.h"

namespace volferry::session {

struct Volume {
  wire::RootKind kind = wire::RootKind::kMissing;
  std::string path;        // as given, for messages
  std::uint64_t size = 0;  // of a file or device
  base::UniqueFd fd;       // the root, readable; none if missing
  base::UniqueFd parent;   // the directory that holds the root (not for directories)
  std::string name;        // in `parent`
  io::Metadata meta;       // unless missing
};

// Opens what stands at `path`. The path itself may lead over symbolic links: it is the operator's.
// `below`: a
// '/'-separated path under it that comes from a peer and follows none. kUsage with what to do for a
// missing source.
Result<Volume> open_source(const std::string& path, const std::string& below);
// A missing destination is fine if its parent exists: `kind` is then kMissing, with parent and name
// set.
Result<Volume> open_destination(const std::string& path, const std::string& below);

// kUsage, naming what was found at each end, unless a sync may go from one to the other.
Status check_pairing(wire::RootKind source, wire::RootKind destination, bool verify);
// kUsage where both are the same, or one lies inside the other.
Status check_apart(const Volume& source, const Volume& destination);

// Makes a missing destination directory, opens devices and files as needed. After it
// `destination.fd` is open where the destination exists.
Status create_destination(Volume& destination, wire::RootKind source);
// Refuses (kUsage) if another process is writing this volume; waits a little for one that is just
// ending. Held as long as the returned descriptor.
Result<base::UniqueFd> lock_destination(const Volume& destination,
                                        std::chrono::milliseconds patience);

std::string_view kind_name(wire::RootKind kind);

}  // namespace volferry::session
