// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/session/installer.h"

namespace volferry::session {

// The 11 characters of rsync's --itemize-changes (rsync(1)): update type, item type, then what
// changed: checksum (or link target), size, time, permissions, owner, group, "u" unused, ACL,
// xattr. `kind`: 'h' for a hard link, else 0.
std::string item_code(wire::EntryType type, bool is_new, bool content, bool size,
                      const MetaDiff& diff, char kind);

}  // namespace volferry::session
