// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"

namespace volferry::session {

// Confines the calling thread, and threads it starts, to the file system below `root` by Landlock
// (landlock(7)), with read access to /proc and the `readable` paths besides, as far as these exist.
// Every access is confined by descriptor
// anyway; this bounds what a bug could do. False where the kernel has no Landlock.
Result<bool> confine_to(const std::string& root, bool writable,
                        const std::vector<std::string>& readable = {});

}  // namespace volferry::session
