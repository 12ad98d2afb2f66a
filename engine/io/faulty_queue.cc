// SPDX-License-Identifier: Apache-2.0
#include "engine/io/faulty_queue.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/io/internal/request.h"

namespace volferry::io {

FaultyQueue::FaultyQueue(std::unique_ptr<IoQueue> inner, FaultPlan plan)
    : inner_(std::move(inner)), plan_(plan), random_(plan.seed) {}

FaultyQueue::~FaultyQueue() { drain(); }

void FaultyQueue::submit(IoRequest& request) {
  while (callbacks_ == 0 && active_ >= depth()) wait(1);
  auto& operation = *operations_in_flight_.emplace_back(std::make_unique<Operation>());
  operation.request = &request;
  operation.forwarded = request;
  operation.forwarded.done = [this, &operation](IoRequest&, Result<std::size_t> outcome) {
    operation.outcome = std::move(outcome);
    completed_.push_back(&operation);
  };
  ++active_;
  if (spoil(operation, operations_++)) {
    completed_.push_back(&operation);
  } else {
    inner_->submit(operation.forwarded);
  }
}

bool FaultyQueue::spoil(Operation& operation, std::uint64_t number) {
  const bool here = number == plan_.at_operation;
  const bool read = operation.forwarded.op == IoOp::kRead;
  if (plan_.fault == Fault::kFail && here) {
    operation.error = plan_.os_errno;
    return true;
  }
  if (plan_.fault == Fault::kDiskFull && number >= plan_.at_operation && !read) {
    operation.error = ENOSPC;
    return true;
  }
  if (plan_.fault == Fault::kShorten && here) {
    // Half of it, in whole pages where there are any, so that a direct transfer stays aligned.
    const std::size_t half = operation.forwarded.length / 2;
    operation.forwarded.length = half >= 4096 ? half / 4096 * 4096 : half;
    if (!read) operation.error = plan_.os_errno;
  }
  return false;
}

unsigned FaultyQueue::wait(unsigned min_complete) {
  // When reordering, at least two to choose from.
  inner_->wait(plan_.reorder ? std::min(2U, inner_->in_flight()) : 0);
  unsigned ran = 0;
  for (;;) {
    while (!completed_.empty() && (ran < min_complete || !plan_.reorder)) {
      run_one();
      ++ran;
    }
    if (ran >= min_complete || active_ == 0) return ran;
    // Nothing is held back any more, so the rest is with the inner queue.
    inner_->wait(1);
  }
}

// Reports one held operation: the oldest, or a random one when reordering.
void FaultyQueue::run_one() {
  const std::size_t chosen = plan_.reorder ? random_() % completed_.size() : 0;
  Operation* const operation = completed_[chosen];
  completed_.erase(completed_.begin() + static_cast<std::ptrdiff_t>(chosen));
  const auto owned = std::find_if(operations_in_flight_.begin(), operations_in_flight_.end(),
                                  [&](const auto& each) { return each.get() == operation; });
  const std::unique_ptr<Operation> finished = std::move(*owned);
  operations_in_flight_.erase(owned);
  --active_;
  IoRequest& request = *finished->request;
  Result<std::size_t> outcome = std::move(finished->outcome);
  if (finished->error) {
    outcome = std::unexpected(internal::request_error(request, *finished->error));
  }
  ++callbacks_;
  request.done(request, std::move(outcome));
  --callbacks_;
}

}  // namespace volferry::io
