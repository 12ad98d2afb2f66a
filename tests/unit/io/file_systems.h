// SPDX-License-Identifier: Apache-2.0
// Where file tests run: the working directory, tmpfs, and fresh ext4, xfs and btrfs images.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/unit/io/scratch.h"

namespace volferry::io::test {

class FileSystemTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string& where = GetParam();
    std::string parent = ".";
    if (where == "tmpfs") {
      parent = "/dev/shm";
      if (::access(parent.c_str(), W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
    } else if (where != "cwd") {
      std::string why;
      mount_ = LoopMount::make(where, why);
      if (mount_ == nullptr) GTEST_SKIP() << why;
      parent = mount_->path();
    }
    dir_ = std::make_unique<ScratchDir>(parent);
  }

  std::unique_ptr<LoopMount> mount_;
  std::unique_ptr<ScratchDir> dir_;
};

inline auto all_file_systems() { return testing::Values("cwd", "tmpfs", "ext4", "xfs", "btrfs"); }
inline std::string file_system_name(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace volferry::io::test
