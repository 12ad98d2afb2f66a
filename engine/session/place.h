// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/session/extras.h"

namespace volferry::session {

// Gives the finished temporary `temp` the name `name` in one step: what had the name is gone
// afterwards, whatever its type. Where a directory and something else change places they are
// exchanged (renameat2, RENAME_EXCHANGE) and the old one is removed under the temporary's name, so
// that the name is never missing. A directory that holds excluded items is not replaced: ENOTEMPTY.
Status place(int dirfd, const std::string& temp, const std::string& name, const std::string& path,
             Remover& remover, bool filtered);

}  // namespace volferry::session
