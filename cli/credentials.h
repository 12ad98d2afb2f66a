// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/arguments.h"

#include "engine/transport/connect.h"

namespace volferry::cli {

// The client's credentials from its files: the key file's first line, or that of `--psk-identity`.
// Errors: kUsage, with the file's name and what to do.
Result<transport::TlsCredentials> load_credentials(const KeyArguments& keys);

// The server's keys (all lines of the file) or certificate files, set in `options`.
Result<transport::ServerOptions> with_server_keys(transport::ServerOptions options,
                                                  const KeyArguments& keys);

}  // namespace volferry::cli
