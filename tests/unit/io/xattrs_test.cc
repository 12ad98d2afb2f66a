// SPDX-License-Identifier: Apache-2.0
#include "engine/io/xattrs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/unit/io/scratch.h"

namespace volferry::io {
namespace {

constexpr XattrPolicy kAll{};
constexpr std::size_t kRoom = 8u << 20;

// user::rw-, user:1:rw-, group::r--, mask::rw-, other::---, as the kernel keeps it (acl(5)).
const std::string kAcl(
    "\x02\x00\x00\x00"
    "\x01\x00\x06\x00\xff\xff\xff\xff"
    "\x02\x00\x06\x00\x01\x00\x00\x00"
    "\x04\x00\x04\x00\xff\xff\xff\xff"
    "\x10\x00\x06\x00\xff\xff\xff\xff"
    "\x20\x00\x00\x00\xff\xff\xff\xff",
    44);
// No rights, version 2.
const std::string kNoCapability(
    "\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);

class XattrsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = scratch_.file("f", {1});
    dir_ = base::UniqueFd(::open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (::fsetxattr(file_.get(), "user.probe", "x", 1, 0) != 0) {
      GTEST_SKIP() << "no user attributes on this file system: " << std::strerror(errno);
    }
    ASSERT_EQ(::fremovexattr(file_.get(), "user.probe"), 0);
  }
  XattrTarget target() const { return XattrTarget::of_fd(file_.get()); }
  void set(const std::string& name, const std::string& value) {
    ASSERT_EQ(::fsetxattr(file_.get(), name.c_str(), value.data(), value.size(), 0), 0)
        << name << ": " << std::strerror(errno);
  }
  XattrList all() const {
    auto list = read_xattrs(target(), kAll, kRoom);
    EXPECT_TRUE(list);
    return list ? *list : XattrList{};
  }
  test::ScratchDir scratch_;
  base::UniqueFd file_;
  base::UniqueFd dir_;
};

TEST(Carried, WhatBelongsToTheVolume) {
  EXPECT_TRUE(carried("user.a", kAll));
  EXPECT_TRUE(carried("trusted.a", kAll));
  EXPECT_TRUE(carried(kCapability, kAll));
  EXPECT_TRUE(carried(kAclAccess, kAll));
  EXPECT_TRUE(carried(kAclDefault, kAll));
  EXPECT_FALSE(carried("security.selinux", kAll));
  EXPECT_FALSE(carried("security.ima", kAll));
  EXPECT_FALSE(carried("system.nfs4_acl", kAll));
  EXPECT_FALSE(carried("users.a", kAll));
}

TEST(Carried, EachHalfAlone) {
  constexpr XattrPolicy kNoAcls{true, false};
  constexpr XattrPolicy kOnlyAcls{false, true};
  EXPECT_FALSE(carried(kAclAccess, kNoAcls));
  EXPECT_TRUE(carried("user.a", kNoAcls));
  EXPECT_TRUE(carried(kAclDefault, kOnlyAcls));
  EXPECT_FALSE(carried("user.a", kOnlyAcls));
  EXPECT_FALSE(carried(kCapability, kOnlyAcls));
}

TEST_F(XattrsTest, SortedWithBinaryAndEmptyValues) {
  set("user.b", std::string("\0\xff", 2));
  set("user.a", "");
  set("user.long", std::string(1000, 'v'));
  EXPECT_THAT(all(),
              ::testing::ElementsAre(Xattr{"user.a", ""}, Xattr{"user.b", std::string("\0\xff", 2)},
                                     Xattr{"user.long", std::string(1000, 'v')}));
}

TEST_F(XattrsTest, ByNameAsByDescriptor) {
  set("user.a", "1");
  const auto list = read_xattrs(XattrTarget::of_name(dir_.get(), "f"), kAll, kRoom);
  ASSERT_TRUE(list);
  EXPECT_EQ(*list, all());
}

TEST_F(XattrsTest, ManyNames) {
  // More than the first buffer for names holds.
  XattrList want;
  for (int i = 100; i < 160; ++i) {
    want.push_back({std::string("user.a-name-of-some-length-").append(std::to_string(i)), "v"});
    set(want.back().name, "v");
  }
  EXPECT_EQ(all(), want);
}

TEST_F(XattrsTest, MoreBytesThanAllowed) {
  set("user.a", std::string(500, 'a'));
  set("user.b", std::string(500, 'b'));
  EXPECT_EQ(read_xattrs(target(), kAll, 800).error().os_errno, EOVERFLOW);
  EXPECT_TRUE(read_xattrs(target(), kAll, 1012));
}

// listxattr(2) gives up past 64 KiB of names; ext4 holds less in all, tmpfs and xfs hold more.
TEST_F(XattrsTest, MoreNamesThanTheKernelLists) {
  std::string why;
  const auto tmpfs = test::TinyTmpfs::make(16u << 20, why);
  if (tmpfs == nullptr) GTEST_SKIP() << why;
  const std::string path = tmpfs->path() + "/f";
  const base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd);
  const std::string long_name(230, 'n');
  for (int i = 0; i < 400; ++i) {
    const std::string name = "trusted." + long_name + std::to_string(1000 + i);
    if (::fsetxattr(fd.get(), name.c_str(), "v", 1, 0) != 0) {
      GTEST_SKIP() << "this tmpfs holds no 96 KiB of names: " << std::strerror(errno);
    }
  }
  const auto list = read_xattrs(XattrTarget::of_fd(fd.get()), kAll, kRoom);
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().os_errno, E2BIG);
}

TEST_F(XattrsTest, AppliesTheDifference) {
  set("user.gone", "1");
  set("user.other", "1");
  set("user.same", "1");
  const XattrList want{{"user.new", "2"}, {"user.other", "2"}, {"user.same", "1"}};
  ASSERT_TRUE(apply_xattrs(target(), want, all()));
  EXPECT_EQ(all(), want);
  ASSERT_TRUE(apply_xattrs(target(), {}, all()));
  EXPECT_TRUE(all().empty());
}

TEST_F(XattrsTest, RemovingWhatIsGoneIsNoError) {
  EXPECT_TRUE(apply_xattrs(target(), {}, {{"user.gone", "1"}}));
}

TEST_F(XattrsTest, FailuresNameTheAttribute) {
  const Status done = apply_xattrs(target(), {{"user.huge", std::string(70'000, 'x')}}, {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().context, ::testing::HasSubstr("user.huge"));
}

TEST_F(XattrsTest, AccessAndDefaultAcls) {
  std::filesystem::create_directory(scratch_.path() + "/d");
  const base::UniqueFd directory(
      ::open((scratch_.path() + "/d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto of_dir = XattrTarget::of_fd(directory.get());
  const XattrList want{{kAclAccess, kAcl}, {kAclDefault, kAcl}};
  const Status done = apply_xattrs(of_dir, want, {});
  if (!done && done.error().os_errno == EOPNOTSUPP) GTEST_SKIP() << "no ACLs on this file system";
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(*read_xattrs(of_dir, kAll, kRoom), want);
  EXPECT_TRUE(read_xattrs(of_dir, {true, false}, kRoom)->empty());
  struct stat st{};
  ASSERT_EQ(::fstat(directory.get(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0660u);  // the mask is what the mode's group bits show
  ASSERT_TRUE(apply_xattrs(of_dir, {}, want));
  EXPECT_TRUE(read_xattrs(of_dir, kAll, kRoom)->empty());
}

TEST_F(XattrsTest, TrustedAttributesOfALinkNotOfItsTarget) {
  if (::geteuid() != 0) GTEST_SKIP() << "trusted attributes need root";
  std::filesystem::create_symlink("f", scratch_.path() + "/l");
  const auto link = XattrTarget::of_name(dir_.get(), "l");
  ASSERT_TRUE(apply_xattrs(link, {{"trusted.a", "1"}}, {}));
  EXPECT_EQ(*read_xattrs(link, kAll, kRoom), (XattrList{{"trusted.a", "1"}}));
  EXPECT_TRUE(all().empty());
}

// The kernel drops security.capability when an ACL or another attribute could change what it
// grants; set first, it would be lost by what follows.
TEST_F(XattrsTest, TheCapabilityIsSetLast) {
  if (::geteuid() != 0) GTEST_SKIP() << "capabilities need root";
  // "trusted.a" sorts after "security.capability", and fails.
  const std::string too_long(70'000, 'x');
  const XattrList want{{kCapability, kNoCapability}, {"trusted.a", too_long}};
  ASSERT_FALSE(apply_xattrs(target(), want, {}));
  EXPECT_TRUE(all().empty());
  const XattrList good{{kCapability, kNoCapability}, {"trusted.a", "1"}};
  ASSERT_TRUE(apply_xattrs(target(), good, {}));
  EXPECT_EQ(all(), good);
}

TEST_F(XattrsTest, NothingIsReadWhereNothingIsCarried) {
  set("user.a", "1");
  EXPECT_TRUE(read_xattrs(target(), {false, false}, kRoom)->empty());
}

}  // namespace
}  // namespace volferry::io
