// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "engine/session/out_file.h"

namespace volferry::session {

// Joins neighbouring ranges of one kind into RangeRun frames.
class OutFileWork::Runs {
 public:
  explicit Runs(OutFileWork& work) : work_(work) {}
  Status add(wire::OpKind kind, std::uint64_t range) {
    if (run_.count > 0 && (run_.kind != kind || run_.first + run_.count != range)) VF_TRY(flush());
    if (run_.count == 0) run_ = {work_.file_->request.req, kind, range, 0};
    ++run_.count;
    return {};
  }
  Status flush() {
    if (run_.count == 0) return {};
    wire::RangeRun run = run_;
    run.count = std::exchange(run_.count, 0);
    VF_TRY(work_.parts_.channel.send(wire::make_frame(run), work_.file_->request.req));
    work_.answered(run.count);
    return {};
  }

 private:
  OutFileWork& work_;
  wire::RangeRun run_;
};

}  // namespace volferry::session
