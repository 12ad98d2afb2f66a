// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "engine/io/queue.h"

namespace volferry::io {

enum class Fault : std::uint8_t {
  kNone,
  kFail,     // the operation is not carried out; it reports `os_errno`
  kShorten,  // a read ends half-way as at the end of the file; a write is done half-way and reports
             // `os_errno`
  kDiskFull,  // this and all later writes and syncs report ENOSPC, until `heal`
};

struct FaultPlan {
  Fault fault = Fault::kNone;
  std::uint64_t at_operation = 0;  // counts submissions from 0
  int os_errno = 5;                // EIO
  // Hold completions back and hand them over in random order, up to `depth` of them.
  bool reorder = false;
  // Printed by the test that fails, to repeat it.
  std::uint64_t seed = 0;
};

// A queue for tests: passes requests on to another one and spoils what its plan says. As `IoQueue`:
// one thread.
class FaultyQueue final : public IoQueue {
 public:
  FaultyQueue(std::unique_ptr<IoQueue> inner, FaultPlan plan);
  ~FaultyQueue() override;

  void submit(IoRequest& request) override;
  unsigned wait(unsigned min_complete) override;
  unsigned in_flight() const override { return active_; }
  unsigned depth() const override { return inner_->depth(); }
  Backend backend() const override { return inner_->backend(); }

  // The plan has no effect from here on.
  void heal() { plan_.fault = Fault::kNone; }
  std::uint64_t operations() const { return operations_; }

 private:
  struct Operation {
    IoRequest* request = nullptr;  // the caller's
    IoRequest forwarded;
    std::optional<int> error;  // reported instead of the inner queue's outcome
    Result<std::size_t> outcome = 0;
  };

  // True if the operation has been spoiled so that the inner queue is not asked.
  bool spoil(Operation& operation, std::uint64_t number);
  void run_one();

  std::unique_ptr<IoQueue> inner_;
  FaultPlan plan_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Operation>> operations_in_flight_;
  std::vector<Operation*> completed_;  // held back, not yet reported
  std::uint64_t operations_ = 0;
  unsigned active_ = 0;
  unsigned callbacks_ = 0;
};

}  // namespace volferry::io
