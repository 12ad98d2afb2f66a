// SPDX-License-Identifier: Apache-2.0
#include "engine/session/targets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::TempDir;

class TargetsTest : public ::testing::Test {
 protected:
  TargetsTest() { ::umask(022); }

  // The mode of the temporary while a file of that mode is being built.
  std::uint16_t mode_while_building(std::uint16_t wanted, std::vector<wire::Xattr> xattrs = {}) {
    Targets targets({tree_, options_, installer_, remover_, tally_, pace_});
    FileJob job;
    job.dir = std::make_shared<DestDir>();
    job.dir->node = tree_.root();
    job.name = std::string("f");  // of a literal GCC 12 warns without reason (bug 105651)
    job.want.type = wire::EntryType::kFile;
    job.want.mode = wanted;
    job.want.xattrs = std::move(xattrs);
    auto target = targets.create(job, {}, -1);
    if (!target) {
      ADD_FAILURE() << target.error().message();
      return 0;
    }
    const std::uint16_t mode = io::stat_fd(target->out.get())->mode;
    targets.discard(job, *target, false);
    return mode;
  }

  TempDir dir_;
  io::DirTree tree_{testing::open_dir(dir_.path()), 8};
  Observer observer_;
  Tally tally_{observer_};
  VolumeOptions options_;
  Installer installer_{options_, tally_};
  Remover remover_{options_, tally_, installer_.can_override()};
  DiskPace pace_{false};
};

TEST_F(TargetsTest, ATemporaryHasTheFinalModeWhereThatGivesNobodyMore) {
  for (const std::uint16_t mode : {0644, 0755, 0600, 0700, 0711}) {
    EXPECT_EQ(mode_while_building(mode), mode) << std::oct << mode;
  }
}

TEST_F(TargetsTest, ATemporaryIsPrivateWhereItsOwnerOrGroupCouldMatter) {
  for (const std::uint16_t mode : {0640, 0660, 0666, 0604, 0444, 0400, 0044, 0000, 04755, 01644}) {
    EXPECT_EQ(mode_while_building(mode), 0600) << std::oct << mode;
  }
  EXPECT_EQ(mode_while_building(0644, {{"user.a", {1}}}), 0600);  // or an ACL
  options_.perms = false;
  EXPECT_EQ(mode_while_building(0644), 0600);
}

}  // namespace
}  // namespace volferry::session
