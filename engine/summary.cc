// SPDX-License-Identifier: Apache-2.0
#include "engine/summary.h"

namespace volferry {

int Summary::exit_code() const {
  if (fatal) return volferry::exit_code(fatal->code);
  if (error_count > 0) return volferry::exit_code(Code::kItemFailed);
  if (differences > 0) return volferry::exit_code(Code::kDifferences);
  if (changed_count > 0) return volferry::exit_code(Code::kSourceChanged);
  return 0;
}

}  // namespace volferry
