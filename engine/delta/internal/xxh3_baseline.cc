// SPDX-License-Identifier: Apache-2.0
#define VF_XXH3_KERNEL xxh3_baseline
#include "engine/delta/internal/xxh3_kernel.inc"
