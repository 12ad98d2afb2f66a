// SPDX-License-Identifier: Apache-2.0
// A way to a server on which every connection but the first is slow.
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
  // What comes in on a late connection, from either side, goes on after `delay`.
  SlowDoor(std::uint16_t port, std::chrono::milliseconds delay);
  ~SlowDoor();
  SlowDoor(const SlowDoor&) = delete;
  SlowDoor& operator=(const SlowDoor&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  void accept_all();

  const std::uint16_t server_;
  const std::chrono::milliseconds delay_;
  base::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::thread accepting_;
};

}  // namespace volferry::transport::testing
