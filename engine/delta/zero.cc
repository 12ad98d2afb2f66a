// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/zero.h"

#include "engine/delta/internal/zero_run.h"

namespace volferry::delta {

bool is_zero(base::Bytes data) { return internal::zero_prefix(data) == data.size(); }

}  // namespace volferry::delta
