// SPDX-License-Identifier: Apache-2.0
// Errors as they travel: a Refuse message carries the exit code and a text.
#pragma once

#include "engine/base/error.h"
#include "engine/transport/wire/frame.h"

namespace volferry::transport {

wire::Frame make_refusal(const Error& error);
// The peer's error as ours: the code with that exit code (kProtocol for one that we do not know),
// the text behind "peer: ".
Error refusal_error(const wire::Refuse& refuse);

}  // namespace volferry::transport
