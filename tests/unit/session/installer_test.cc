// SPDX-License-Identifier: Apache-2.0
#include "engine/session/installer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::TempDir;
using testing::write_file;

// cap_net_raw=ep, version 2 (capabilities(7)).
const std::string kNetRaw(
    "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);

class InstallerTest : public ::testing::Test {
 protected:
  InstallerTest() { write_file(dir_.at("f"), "x", 0600); }
  wire::EntryMeta want() const {
    wire::EntryMeta meta;
    meta.mode = 0640;
    meta.uid = ::geteuid();
    meta.gid = ::getegid();
    meta.mtime_s = 1000;
    meta.mtime_ns = 999'999'999;
    return meta;
  }
  Present present() {
    const Installer installer(options_, tally_);
    return *installer.read(fd_.get(), "f", *io::stat_at(fd_.get(), "f"));
  }
  Status apply(const wire::EntryMeta& meta, bool by_name) {
    Installer installer(options_, tally_);
    const Present now = present();
    if (by_name) return installer.apply(-1, fd_.get(), "f", meta, now);
    const base::UniqueFd file(::open(dir_.at("f").c_str(), O_RDWR | O_CLOEXEC));
    return installer.apply(file.get(), -1, "", meta, now);
  }

  TempDir dir_;
  base::UniqueFd fd_ = testing::open_dir(dir_.path());
  Observer observer_;
  Tally tally_{observer_};
  VolumeOptions options_;
};

TEST_F(InstallerTest, AppliesModeAndTimeBothWays) {
  for (const bool by_name : {false, true}) {
    write_file(dir_.at("f"), "x", 0600);
    ASSERT_TRUE(apply(want(), by_name));
    const Present now = present();
    EXPECT_EQ(now.meta.mode, 0640);
    EXPECT_EQ(now.meta.mtime, (io::Timestamp{1000, 999'999'999}));
    EXPECT_FALSE(Installer(options_, tally_).compare(want(), now).any());
  }
}

TEST_F(InstallerTest, ComparesEachPart) {
  const Installer installer(options_, tally_);
  ASSERT_TRUE(apply(want(), true));
  const Present now = present();
  wire::EntryMeta other = want();
  other.mode = 0600;
  EXPECT_TRUE(installer.compare(other, now).mode);
  other = want();
  other.mtime_ns = 0;
  EXPECT_TRUE(installer.compare(other, now).mtime);
  other = want();
  other.xattrs = {{"user.a", "1"}};
  EXPECT_TRUE(installer.compare(other, now).xattr);
  EXPECT_FALSE(installer.compare(other, now).acl);
  other.xattrs = {{io::kAclAccess, "1"}};
  EXPECT_TRUE(installer.compare(other, now).acl);
  EXPECT_FALSE(installer.compare(other, now).xattr);
}

TEST_F(InstallerTest, WhatIsNotCarriedNeverDiffers) {
  options_.owner = options_.perms = options_.times = false;
  options_.xattrs = {false, false};
  wire::EntryMeta other = want();
  other.mode = 0;
  other.uid = 5;
  other.gid = 6;
  other.mtime_s = 1;
  other.xattrs = {{io::kAclAccess, "1"}, {"user.a", "1"}};
  const Present before = present();
  EXPECT_FALSE(Installer(options_, tally_).compare(other, before).any());
  ASSERT_TRUE(apply(other, true));
  EXPECT_EQ(present().meta.mode, before.meta.mode);
  EXPECT_EQ(present().meta.mtime, before.meta.mtime);
}

// chown(2) clears setuid and setgid, so the mode must come after the owner.
TEST_F(InstallerTest, SpecialBitsSurviveAChangeOfOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  wire::EntryMeta meta = want();
  meta.mode = 06755;
  for (const std::uint32_t uid : {77u, 78u}) {  // the second time only the owner differs
    meta.uid = uid;
    meta.gid = uid + 1;
    ASSERT_TRUE(apply(meta, uid == 77u));
    const Present now = present();
    EXPECT_EQ(now.meta.uid, uid);
    EXPECT_EQ(now.meta.gid, uid + 1);
    EXPECT_EQ(now.meta.mode, 06755);
  }
}

// It also drops security.capability, though nothing in the attributes differs.
TEST_F(InstallerTest, CapabilitiesSurviveAChangeOfOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  wire::EntryMeta meta = want();
  meta.xattrs = {{io::kCapability, kNetRaw}};
  const Status first = apply(meta, false);
  if (!first) GTEST_SKIP() << "no file capabilities here: " << first.error().message();
  ASSERT_EQ(present().xattrs.size(), 1u);
  meta.uid = 77;
  ASSERT_TRUE(apply(meta, false));
  EXPECT_EQ(present().meta.uid, 77u);
  ASSERT_EQ(present().xattrs.size(), 1u);
  EXPECT_EQ(present().xattrs[0].value, kNetRaw);
  EXPECT_EQ(present().meta.mtime, (io::Timestamp{1000, 999'999'999}));
}

TEST_F(InstallerTest, AttributesAreAddedChangedAndRemoved) {
  if (!testing::set_attribute(dir_.at("f"), "user.gone", "1")) GTEST_SKIP() << "no user attributes";
  wire::EntryMeta meta = want();
  meta.xattrs = {{"user.a", "1"}, {"user.b", std::string(300, 'b')}};
  ASSERT_TRUE(apply(meta, true));
  EXPECT_EQ(present().xattrs, (io::XattrList{{"user.a", "1"}, {"user.b", std::string(300, 'b')}}));
  meta.xattrs.clear();
  ASSERT_TRUE(apply(meta, false));
  EXPECT_TRUE(present().xattrs.empty());
}

TEST_F(InstallerTest, LinksHaveOwnerAndTimeButNoMode) {
  ASSERT_EQ(::symlink("f", dir_.at("l").c_str()), 0);
  Installer installer(options_, tally_);
  wire::EntryMeta meta = want();
  meta.type = wire::EntryType::kSymlink;
  meta.mode = 0;
  const Present now = *installer.read(fd_.get(), "l", *io::stat_at(fd_.get(), "l"));
  EXPECT_FALSE(installer.compare(meta, now).mode);
  ASSERT_TRUE(installer.apply(-1, fd_.get(), "l", meta, now));
  EXPECT_EQ(io::stat_at(fd_.get(), "l")->mtime, (io::Timestamp{1000, 999'999'999}));
  EXPECT_NE(io::stat_at(fd_.get(), "f")->mtime, (io::Timestamp{1000, 999'999'999}));
}

TEST_F(InstallerTest, NewModeWithoutPermsFollowsTheUmask) {
  wire::EntryMeta meta = want();
  meta.mode = 06777;
  EXPECT_EQ(Installer(options_, tally_).new_mode(meta), 06777);
  options_.perms = false;
  const mode_t before = ::umask(027);
  const std::uint16_t mode = Installer(options_, tally_).new_mode(meta);
  ::umask(before);
  EXPECT_EQ(mode, 0750);
}

}  // namespace
}  // namespace volferry::session
