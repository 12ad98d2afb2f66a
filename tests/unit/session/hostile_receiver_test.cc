// SPDX-License-Identifier: Apache-2.0
// A receiving peer that breaks the rules: it learns nothing from outside the root, and each breach
// ends the session with kProtocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <ostream>

#include "tests/unit/session/scripted_peer.h"
#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::noise;
using testing::ScriptedPeer;
using testing::TempDir;
using testing::write_file;

constexpr std::uint64_t kMiB = 1u << 20;

// The root has d/inner, file (5 bytes), large (3 MiB), link -> ../outside/secret.
class HostileReceiver : public ::testing::Test {
 protected:
  HostileReceiver() {
    root_ = dir_.make("root");
    dir_.make("outside");
    write_file(dir_.at("outside/secret"), "secret");
    dir_.make("root/d");
    write_file(root_ + "/d/inner", "inner");
    write_file(root_ + "/file", "hello");
    write_file(root_ + "/large", noise(3 * kMiB, 1));
    std::filesystem::create_symlink("../outside/secret", root_ + "/link");
  }
  static wire::FileRequest request(std::uint32_t req, std::uint32_t dir, std::uint32_t index,
                                   std::uint64_t size) {
    wire::FileRequest request;
    request.req = req;
    request.dir = dir;
    request.index = index;
    request.size = size;
    return request;
  }
  static wire::FileRequest segments(std::uint32_t req, std::uint64_t size, std::uint8_t flags = 0) {
    wire::FileRequest file = request(req, 0, kLarge, size);
    file.kind = wire::RequestKind::kSegments;
    file.basis_size = size;
    file.flags = flags;
    return file;
  }

  static constexpr std::uint32_t kFile = 1;
  static constexpr std::uint32_t kLarge = 2;
  static constexpr std::uint32_t kLink = 3;
  TempDir dir_;
  std::string root_;
};

TEST_F(HostileReceiver, TheListIsWhatTheTestsCountOn) {
  ScriptedPeer peer(root_);
  const std::vector<wire::DirList> lists = peer.begin_pull();
  ASSERT_EQ(lists.size(), 2u);
  ASSERT_EQ(lists[0].entries.size(), 4u);
  EXPECT_EQ(lists[0].entries[kFile].name, "file");
  EXPECT_EQ(lists[0].entries[kLarge].name, "large");
  EXPECT_EQ(lists[0].entries[kLink].meta.link_target, "../outside/secret");
  EXPECT_EQ(lists[1].dir, 1u);
  peer.send(request(1, 0, kFile, 5));
  std::string body;
  ASSERT_TRUE(peer.wait<wire::Pack>(&body));
  EXPECT_EQ(body, "hello");
}

struct Breach {
  const char* name;
  std::function<void(ScriptedPeer&)> send;
};
void PrintTo(const Breach& value, std::ostream* out) { *out << value.name; }
class ReceiverBreach : public HostileReceiver, public ::testing::WithParamInterface<Breach> {
 public:
  using HostileReceiver::kFile;
  using HostileReceiver::kLarge;
  using HostileReceiver::request;
  using HostileReceiver::segments;
};

TEST_P(ReceiverBreach, EndsTheSession) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  GetParam().send(peer);
  const Status reason = peer.closed();
  ASSERT_FALSE(reason);
  EXPECT_EQ(reason.error().code, Code::kProtocol) << reason.error().message();
  EXPECT_EQ(peer.exit_code(), 12);
}

const Breach kBreaches[] = {
    {"UnlistedIndex", [](ScriptedPeer& p) { p.send(ReceiverBreach::request(1, 0, 99, 5)); }},
    {"UnlistedIndexOfALargeFile",
     [](ScriptedPeer& p) { p.send(ReceiverBreach::request(1, 0, 99, 3 * kMiB)); }},
    {"UnknownDirectory", [](ScriptedPeer& p) { p.send(ReceiverBreach::request(1, 77, 0, 5)); }},
    {"ReleasedDirectory",
     [](ScriptedPeer& p) {
       p.send(wire::DirRelease{1});
       p.send(ReceiverBreach::request(1, 1, 0, 5));
     }},
    {"RequestNumberTwice",
     [](ScriptedPeer& p) {
       p.send(ReceiverBreach::segments(1, 3 * kMiB));
       p.send(ReceiverBreach::segments(1, 3 * kMiB));
     }},
    {"SegmentsOfAnEmptyFile", [](ScriptedPeer& p) { p.send(ReceiverBreach::segments(1, 0)); }},
    {"SegmentPastTheEnd",
     [](ScriptedPeer& p) {
       p.send(ReceiverBreach::segments(1, 3 * kMiB));
       p.send(wire::SegmentRequest{1, 0, std::vector<wire::RangeSig>(4)});
     }},
    {"SegmentNumberPastTheEnd",
     [](ScriptedPeer& p) {
       p.send(ReceiverBreach::segments(1, 3 * kMiB));
       p.send(wire::SegmentRequest{1, 0xffffffff, std::vector<wire::RangeSig>(1)});
     }},
    {"BlockHashesPastTheEnd",
     [](ScriptedPeer& p) {
       p.send(ReceiverBreach::segments(1, 3 * kMiB));
       p.send(wire::FineHashes{1, 3, {1, 2, 3}});
     }},
    {"RollingSignatureNotAskedFor",
     [](ScriptedPeer& p) {
       p.send(ReceiverBreach::segments(1, 3 * kMiB, wire::kRequestRolling));
       p.send(wire::RollingSignature{1, 0, true, {1}, {1}});
     }},
    {"RetryPastTheEnd",
     [](ScriptedPeer& p) {
       p.send(ReceiverBreach::segments(1, 3 * kMiB));
       p.send(wire::RangeRetry{1, 3});
     }},
    {"HandshakeInside", [](ScriptedPeer& p) { p.send(wire::HelloAck{}); }},
};

INSTANTIATE_TEST_SUITE_P(Breaches, ReceiverBreach, ::testing::ValuesIn(kBreaches),
                         [](const auto& info) { return std::string(info.param.name); });

// More signature than was asked for, and in the wrong place.
TEST_F(HostileReceiver, RollingSignatureOutOfPlace) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  peer.send(segments(1, 3 * kMiB, wire::kRequestRolling));
  // Nothing at the receiver: every range may be a shifted one.
  peer.send(wire::SegmentRequest{1, 0, std::vector<wire::RangeSig>(3)});
  const auto asked = peer.wait<wire::RollingRequest>();
  ASSERT_TRUE(asked);
  peer.send(wire::RollingSignature{1, 5, false, {1}, {1}});
  const Status reason = peer.closed();
  ASSERT_FALSE(reason);
  EXPECT_EQ(reason.error().code, Code::kProtocol);
}

// A signature that ends early is a short basis, no breach: the content then comes as literals.
TEST_F(HostileReceiver, RollingSignatureThatEndsEarly) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  peer.send(segments(1, 3 * kMiB, wire::kRequestRolling));
  peer.send(wire::SegmentRequest{1, 0, std::vector<wire::RangeSig>(3)});
  ASSERT_TRUE(peer.wait<wire::RollingRequest>());
  peer.send(wire::RollingSignature{1, 0, true, {}, {}});
  std::string got;
  for (int i = 0; i < 3; ++i) {
    std::string body;
    const auto data = peer.wait<wire::RangeData>(&body);
    ASSERT_TRUE(data);
    EXPECT_EQ(data->range, static_cast<std::uint64_t>(i));
    got += body;
  }
  EXPECT_EQ(got, noise(3 * kMiB, 1));
  EXPECT_TRUE(peer.wait<wire::FileEnd>());
}

// Two of one segment must not make the sender believe that ranges are left which are not.
TEST_F(HostileReceiver, SegmentTwiceDoesNoHarm) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  peer.send(segments(1, 3 * kMiB, wire::kRequestRolling));
  const wire::SegmentRequest segment{1, 0, std::vector<wire::RangeSig>(3)};
  peer.send(segment);
  peer.send(segment);
  const auto asked = peer.wait<wire::RollingRequest>();
  ASSERT_TRUE(asked);
  peer.send(wire::RollingSignature{1, 0, true, {}, {}});
  ASSERT_TRUE(peer.wait<wire::RangeData>());
  // Still alive.
  peer.send(request(2, 0, kFile, 5));
  EXPECT_TRUE(peer.wait<wire::Pack>());
}

// A listed index that is no regular file gives no content, whatever it leads to.
TEST_F(HostileReceiver, ContentOfALink) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  peer.send(request(1, 0, kLink, 6));
  std::string body;
  const auto pack = peer.wait<wire::Pack>(&body);
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->files.at(0).result, wire::FileResult::kError);
  EXPECT_EQ(pack->files.at(0).os_errno, ELOOP);
  EXPECT_EQ(body, "");
}

TEST_F(HostileReceiver, ContentOfADirectory) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  peer.send(request(1, 0, 0, 6));
  const auto pack = peer.wait<wire::Pack>();
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->files.at(0).result, wire::FileResult::kError);
}

TEST_F(HostileReceiver, FileSwappedForALink) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  std::filesystem::remove(root_ + "/file");
  std::filesystem::create_symlink("../outside/secret", root_ + "/file");
  peer.send(request(1, 0, kFile, 6));
  std::string body;
  const auto pack = peer.wait<wire::Pack>(&body);
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->files.at(0).os_errno, ELOOP);
  EXPECT_EQ(body, "");
}

TEST_F(HostileReceiver, DirectorySwappedForALink) {
  write_file(dir_.at("outside/inner"), "stolen");
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  std::filesystem::rename(root_ + "/d", root_ + "/moved");
  std::filesystem::create_directory_symlink("../outside", root_ + "/d");
  peer.send(request(1, 1, 0, 5));
  std::string body;
  ASSERT_TRUE(peer.wait<wire::Pack>(&body));
  EXPECT_NE(body, "stolen");
}

TEST_F(HostileReceiver, FileThatVanished) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  std::filesystem::remove(root_ + "/file");
  std::filesystem::remove(root_ + "/large");
  peer.send(request(1, 0, kFile, 5));
  const auto pack = peer.wait<wire::Pack>();
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->files.at(0).result, wire::FileResult::kVanished);
  peer.send(request(2, 0, kLarge, 3 * kMiB));
  const auto end = peer.wait<wire::FileEnd>();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->result, wire::FileResult::kVanished);
}

TEST_F(HostileReceiver, FileThatGrewComesWithItsNewState) {
  ScriptedPeer peer(root_);
  (void)peer.begin_pull();
  write_file(root_ + "/large", noise(kMiB, 2));
  peer.send(request(1, 0, kLarge, 3 * kMiB));
  const auto end = peer.wait<wire::FileEnd>();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->result, wire::FileResult::kChanged);
  ASSERT_TRUE(end->has_meta);
  EXPECT_EQ(end->meta.size, kMiB);
}

// ---- Start

struct BadSubpath {
  const char* path;
  int exit_code;
};
void PrintTo(const BadSubpath& value, std::ostream* out) { *out << value.path; }
class HostileStart : public HostileReceiver, public ::testing::WithParamInterface<BadSubpath> {};

TEST_P(HostileStart, SubpathIsRefused) {
  std::filesystem::create_directory_symlink("../outside", root_ + "/out");
  ScriptedPeer peer(root_);
  peer.start(wire::Direction::kPull, 0, GetParam().path);
  EXPECT_FALSE(peer.wait<wire::StartAck>());
  EXPECT_EQ(peer.exit_code(), GetParam().exit_code);
}
INSTANTIATE_TEST_SUITE_P(Subpaths, HostileStart,
                         ::testing::Values(BadSubpath{"..", 12}, BadSubpath{"../outside", 12},
                                           BadSubpath{"d/../../outside", 12}, BadSubpath{".", 12},
                                           BadSubpath{"out", 22}, BadSubpath{"out/secret", 2},
                                           BadSubpath{"nowhere", 2}));

TEST_F(HostileReceiver, PullFromAWriteOnlyServer) {
  ServeOptions serve;
  serve.root = root_;
  serve.confine = false;
  serve.allow_pull = false;
  serve.limits = testing::quick_options();
  ScriptedPeer peer(root_, serve);
  peer.start(wire::Direction::kPull);
  EXPECT_FALSE(peer.wait<wire::StartAck>());
  EXPECT_EQ(peer.exit_code(), 2);
}

TEST_F(HostileReceiver, PushToAReadOnlyServer) {
  ServeOptions serve;
  serve.root = root_;
  serve.confine = false;
  serve.allow_push = false;
  serve.limits = testing::quick_options();
  ScriptedPeer peer(root_, serve);
  peer.start(wire::Direction::kPush);
  EXPECT_FALSE(peer.wait<wire::StartAck>());
  EXPECT_EQ(peer.exit_code(), 2);
}

}  // namespace
}  // namespace volferry::session
