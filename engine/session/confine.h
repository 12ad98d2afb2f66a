// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/base/error.h"

namespace volferry::session {

// Confines the calling thread, and threads it starts, to the file system below `root` by Landlock
// (landlock(7)), with read access to /proc/self besides. Every access is confined by descriptor
// anyway; this bounds what a bug could do. False where the kernel has no Landlock.
Result<bool> confine_to(const std::string& root, bool writable);

}  // namespace volferry::session
