// SPDX-License-Identifier: Apache-2.0
// A way to a server on which some connections are slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "engine/base/unique_fd.h"

namespace volferry::transport::testing {

// Listens on loopback and hands connections on to the server at `port`, side by side.
// Ends when it is destroyed; the connections must have ended by then.
class SlowDoor {
 public:
  // What comes in on the first connection, from either side, goes on after `first`; on the later
  // ones after `later`.
  SlowDoor(std::uint16_t port, std::chrono::milliseconds first, std::chrono::milliseconds later);
  ~SlowDoor();
  SlowDoor(const SlowDoor&) = delete;
  SlowDoor& operator=(const SlowDoor&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  void accept_all();

  const std::uint16_t server_;
  const std::chrono::milliseconds first_;
  const std::chrono::milliseconds later_;
  base::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::thread accepting_;
};

}  // namespace volferry::transport::testing
