// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/base/bytes.h"

namespace volferry::base {

// Fills `out` from the kernel's CSPRNG (getrandom(2)). Aborts where the kernel has none: nothing
// safe could follow.
void fill_random(MutBytes out);

}  // namespace volferry::base
