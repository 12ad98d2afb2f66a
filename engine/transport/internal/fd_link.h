// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/base/unique_fd.h"
#include "engine/transport/internal/link.h"

namespace volferry::transport {

// A link over two pipes, or over a stream socket and its duplicate. Makes both descriptors
// non-blocking, and gives them back as they were. `companion` is destroyed after both are closed:
// the process at the other end, say. Fails with kSystem for descriptors that fcntl refuses.
Result<std::unique_ptr<Link>> make_fd_link(base::UniqueFd in, base::UniqueFd out,
                                           std::shared_ptr<void> companion = nullptr);

}  // namespace volferry::transport
