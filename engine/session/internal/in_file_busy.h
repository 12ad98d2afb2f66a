// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "engine/session/in_file.h"

namespace volferry::session {

// Keeps the file from ending while an operation runs on it; the last to leave ends it.
class InFile::Busy {
 public:
  explicit Busy(InFile& file) : file_(file) {
    const std::lock_guard lock(file_.mutex_);
    ++file_.busy_;
    over_ = file_.over_;
  }
  ~Busy() { file_.leave(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  bool over() const { return over_; }

 private:
  InFile& file_;
  bool over_ = false;
};

}  // namespace volferry::session
