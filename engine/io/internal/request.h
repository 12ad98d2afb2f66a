// SPDX-License-Identifier: Apache-2.0
// What the queue backends share about one request: its name in errors, and where its file ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/io/queue.h"

namespace volferry::io::internal {

// "pread", "pwrite" or "fdatasync".
std::string_view op_name(IoOp op);

// The error of a request that the system refused with `os_errno` (positive): "pwrite fd 7
// @1048576+65536".
Error request_error(const IoRequest& request, int os_errno);

// True if `offset` is at or past the end of the file or device. A direct read that stopped at the
// end of a file cannot be continued, since its next offset is not aligned: the kernel answers
// EINVAL, which then means "end".
bool is_end_of_file(int fd, std::uint64_t offset);

}  // namespace volferry::io::internal
