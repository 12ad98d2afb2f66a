// SPDX-License-Identifier: Apache-2.0
// A sending peer that breaks the rules: each breach ends the session with kProtocol, and nothing is
// written outside the root. A wrong digest is no breach: the content is asked for once more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <ostream>

#include "tests/unit/session/scripted_peer.h"
#include "tests/unit/session/support.h"

#include "engine/session/temp_name.h"

namespace volferry::session {
namespace {

using testing::dir_entry;
using testing::dir_list;
using testing::exists;
using testing::file_entry;
using testing::link_entry;
using testing::noise;
using testing::read_file;
using testing::ScriptedPeer;
using testing::TempDir;
using testing::write_file;

constexpr std::uint64_t kMiB = 1u << 20;
constexpr int kProtocolExit = 12;

class HostileSender : public ::testing::Test {
 protected:
  HostileSender() {
    root_ = dir_.make("root");
    outside_ = dir_.make("outside");
    write_file(outside_ + "/file", "precious");
  }
  void expect_breach(ScriptedPeer& peer) {
    const Status reason = peer.closed();
    ASSERT_FALSE(reason);
    EXPECT_EQ(reason.error().code, Code::kProtocol) << reason.error().message();
    EXPECT_EQ(peer.exit_code(), kProtocolExit);
    expect_outside_untouched();
  }
  void expect_outside_untouched() {
    EXPECT_EQ(read_file(outside_ + "/file"), "precious");
    std::size_t items = 0;
    for (const auto& entry : std::filesystem::directory_iterator(outside_))
      items += entry.exists() ? 1 : 0;
    EXPECT_EQ(items, 1u);
  }
  // A push of one file of `size` bytes up to the receiver's request for it.
  wire::FileRequest ask(ScriptedPeer& peer, std::uint64_t size, std::uint64_t flags = 0) {
    peer.begin_push(flags);
    peer.send(dir_list(0, 0, "", {file_entry("f", size)}));
    peer.end_list();
    const auto request = peer.wait<wire::FileRequest>();
    EXPECT_TRUE(request);
    return request.value_or(wire::FileRequest{});
  }

  TempDir dir_;
  std::string root_;
  std::string outside_;
};

// ---- lists

struct BadList {
  const char* name;
  std::function<void(ScriptedPeer&)> send;
};
void PrintTo(const BadList& value, std::ostream* out) { *out << value.name; }
class HostileList : public HostileSender, public ::testing::WithParamInterface<BadList> {};

TEST_P(HostileList, EndsTheSession) {
  ScriptedPeer peer(root_);
  peer.begin_push();
  GetParam().send(peer);
  expect_breach(peer);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
  }
}

wire::DirList changed(wire::DirList list, const std::function<void(wire::DirList&)>& change) {
  change(list);
  return list;
}

const BadList kBadLists[] = {
    {"NameDotDot", [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {dir_entry("..")})); }},
    {"NameDot", [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {file_entry(".", 1)})); }},
    {"NameWithSlash", [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {file_entry("a/b", 1)})); }},
    {"NameEmpty", [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {file_entry("", 1)})); }},
    {"NameWithNul",
     [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {file_entry(std::string("a\0b", 3), 1)})); }},
    {"NameTooLong",
     [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {file_entry(std::string(256, 'a'), 1)})); }},
    {"DirectoryNamedDotDot",
     [](ScriptedPeer& p) {
       p.send(dir_list(0, 0, "", {dir_entry("d")}));
       p.send(dir_list(1, 0, "..", {}));
     }},
    {"OutOfOrder",
     [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {dir_entry("b"), dir_entry("a")})); }},
    {"NameTwice",
     [](ScriptedPeer& p) { p.send(dir_list(0, 0, "", {dir_entry("a"), dir_entry("a")})); }},
    {"OutOfOrderAcrossChunks",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {dir_entry("b")}), [](auto& l) { l.last = false; }));
       p.send(changed(dir_list(0, 0, "", {dir_entry("a")}), [](auto& l) {
         l.first = false;
         l.first_index = 1;
       }));
     }},
    {"IndexGap",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {dir_entry("a")}), [](auto& l) { l.first_index = 3; }));
     }},
    {"UnknownParent",
     [](ScriptedPeer& p) {
       p.send(dir_list(0, 0, "", {dir_entry("d")}));
       p.send(dir_list(7, 5, "d", {}));
     }},
    {"ChildBeforeRoot", [](ScriptedPeer& p) { p.send(dir_list(1, 0, "d", {})); }},
    {"RootTwice",
     [](ScriptedPeer& p) {
       p.send(dir_list(0, 0, "", {}));
       p.send(dir_list(0, 0, "", {}));
     }},
    {"ChunkOfNoDirectory",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {}), [](auto& l) { l.first = false; }));
     }},
    {"ChunkOfAnotherDirectory",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {dir_entry("d")}), [](auto& l) { l.last = false; }));
       p.send(changed(dir_list(1, 0, "d", {}), [](auto& l) { l.first = false; }));
     }},
    {"CutShort",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {dir_entry("d")}), [](auto& l) { l.last = false; }));
       p.send(dir_list(1, 0, "d", {}));
     }},
    {"EndInsideADirectory",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {dir_entry("d")}), [](auto& l) { l.last = false; }));
       p.end_list();
     }},
    {"DirectoryOfAnotherType",
     [](ScriptedPeer& p) {
       p.send(
           changed(dir_list(0, 0, "", {}), [](auto& l) { l.meta.type = wire::EntryType::kFile; }));
     }},
    {"ImageForADirectory",
     [](ScriptedPeer& p) {
       p.send(changed(dir_list(0, 0, "", {file_entry("", 5)}), [](auto& l) { l.image = true; }));
     }},
};

INSTANTIATE_TEST_SUITE_P(Breaches, HostileList, ::testing::ValuesIn(kBadLists),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- content

struct BadContent {
  const char* name;
  std::uint64_t size;  // of the file asked for
  std::string basis;   // what stands at the destination
  std::function<void(ScriptedPeer&, std::uint32_t req)> send;
};
void PrintTo(const BadContent& value, std::ostream* out) { *out << value.name; }
class HostileContent : public HostileSender, public ::testing::WithParamInterface<BadContent> {};

TEST_P(HostileContent, EndsTheSession) {
  if (!GetParam().basis.empty()) write_file(root_ + "/f", GetParam().basis);
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, GetParam().size);
  GetParam().send(peer, request.req);
  expect_breach(peer);
  EXPECT_EQ(exists(root_ + "/f"), !GetParam().basis.empty());
  if (!GetParam().basis.empty()) {
    EXPECT_EQ(read_file(root_ + "/f"), GetParam().basis);
  }
}

const BadContent kBadContents[] = {
    {"PackNotAskedFor", 5, "",
     [](ScriptedPeer& p, std::uint32_t req) { p.send(p.pack(req + 100, "hello"), "hello"); }},
    {"PackTwice", 5, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       wire::Pack pack = p.pack(req, "hellO");
       pack.files[0].result = wire::FileResult::kVanished;
       pack.files[0].digest.clear();
       pack.files[0].length = 0;
       pack.raw_bytes = 0;
       pack.files.push_back(pack.files[0]);
       p.send(pack);
     }},
    {"PackBodyShorterThanToldOf", 5, "",
     [](ScriptedPeer& p, std::uint32_t req) { p.send(p.pack(req, "hello"), "hell"); }},
    {"PackOfBadZstd", 5, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       wire::Pack pack = p.pack(req, "hello");
       pack.compressed = true;
       p.send(pack, "rubbish");
     }},
    {"OpsTooShort", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       const std::string part = noise(kMiB - 1, 1);
       p.send(p.literal(req, 0, part), part);
     }},
    {"OpsTooLong", 3 * kMiB - 4096, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       const std::string part = noise(kMiB, 1);
       p.send(p.literal(req, 2, part), part);
     }},
    {"RangePastTheEnd", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       const std::string part = noise(kMiB, 1);
       p.send(p.literal(req, 3, part), part);
     }},
    {"RangeNumberThatWraps", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       const std::string part = noise(kMiB, 1);
       p.send(p.literal(req, 1ull << 44, part), part);
     }},
    {"RangeTwice", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       const std::string part = noise(kMiB, 1);
       p.send(p.literal(req, 1, part), part);
       p.send(p.literal(req, 1, part), part);
     }},
    {"RunPastTheEnd", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       p.send(wire::RangeRun{req, wire::OpKind::kHole, 2, 2});
     }},
    {"RunOverAnAnsweredRange", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       p.send(wire::RangeRun{req, wire::OpKind::kHole, 1, 1});
       p.send(wire::RangeRun{req, wire::OpKind::kZero, 0, 3});
     }},
    {"SameWithoutBasis", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       p.send(wire::RangeRun{req, wire::OpKind::kSame, 0, 3});
     }},
    {"EqualRangeWithoutBasis", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       wire::RangeData data = p.literal(req, 0, "");
       data.digest.clear();
       data.ops = {{wire::OpKind::kSame, kMiB, 0}};
       p.send(data);
     }},
    {"EqualRangeWithContent", 3 * kMiB, noise(2 * kMiB, 3),
     [](ScriptedPeer& p, std::uint32_t req) {
       const std::string part = noise(kMiB, 1);
       wire::RangeData data = p.literal(req, 0, part);
       data.digest.clear();
       p.send(data, part);
     }},
    {"CopyWithoutBasis", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       wire::RangeData data = p.literal(req, 0, "");
       data.digest = p.digest("x");
       data.ops = {{wire::OpKind::kCopy, kMiB, 0}};
       p.send(data);
     }},
    {"FineRequestWithoutBasis", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) { p.send(wire::FineRequest{req, {0}}); }},
    {"FineRequestPastTheEnd", 3 * kMiB, noise(2 * kMiB, 3),
     [](ScriptedPeer& p, std::uint32_t req) { p.send(wire::FineRequest{req, {3}}); }},
    {"RollingRequestWithoutBasis", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) { p.send(wire::RollingRequest{req, 0, 4096, 4096}); }},
    {"BadZstdRange", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       wire::RangeData data = p.literal(req, 0, noise(kMiB, 1));
       data.compressed = true;
       p.send(data, "rubbish");
     }},
    {"SizeChangedAtTheEnd", 3 * kMiB, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       p.send(wire::RangeRun{req, wire::OpKind::kHole, 0, 3});
       wire::FileEnd end;
       end.req = req;
       end.has_meta = true;
       end.meta = file_entry("", 17).meta;
       p.send(end);
     }},
    {"RequestsOfAReceiver", 5, "",
     [](ScriptedPeer& p, std::uint32_t req) {
       wire::FileRequest request;
       request.req = req;
       p.send(request);
     }},
};

INSTANTIATE_TEST_SUITE_P(Breaches, HostileContent, ::testing::ValuesIn(kBadContents),
                         [](const auto& info) { return std::string(info.param.name); });

// A dry run writes nothing at all, whatever the sender answers.
TEST_F(HostileSender, ContentInADryRun) {
  write_file(root_ + "/f", "world");
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 5, wire::kFlagDryRun | wire::kFlagChecksum);
  EXPECT_NE(request.flags & wire::kRequestCompareOnly, 0);
  peer.send(peer.pack(request.req, "hello"), "hello");
  expect_breach(peer);
  EXPECT_EQ(read_file(root_ + "/f"), "world");
}

TEST_F(HostileSender, RangeInADryRun) {
  const std::string old = noise(3 * kMiB, 1);
  write_file(root_ + "/f", old);
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 3 * kMiB, wire::kFlagDryRun | wire::kFlagChecksum);
  const std::string part = noise(kMiB, 2);
  peer.send(peer.literal(request.req, 0, part), part);
  expect_breach(peer);
  EXPECT_EQ(read_file(root_ + "/f"), old);
}

// No memory is taken for what no file system could hold.
TEST_F(HostileSender, SizePastEveryLimit) {
  ScriptedPeer peer(root_);
  peer.begin_push();
  peer.send(dir_list(0, 0, "", {file_entry("f", (1ull << 63) - 1)}));
  peer.end_list();
  (void)peer.wait<wire::Finish>();
  EXPECT_FALSE(exists(root_ + "/f"));
}

// ---- digests

TEST_F(HostileSender, SmallFileWrongOnceIsAskedForAgain) {
  ScriptedPeer peer(root_);
  wire::FileRequest request = ask(peer, 5);
  peer.send(peer.pack(request.req, "hello"), "HELLO");
  const auto again = peer.wait<wire::FileRequest>();
  ASSERT_TRUE(again);
  EXPECT_FALSE(exists(root_ + "/f"));
  peer.send(peer.pack(again->req, "hello"), "hello");
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 0);
  EXPECT_EQ(read_file(root_ + "/f"), "hello");
}

TEST_F(HostileSender, SmallFileWrongTwiceIsAnItemError) {
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 5);
  peer.send(peer.pack(request.req, "hello"), "HELLO");
  const auto again = peer.wait<wire::FileRequest>();
  ASSERT_TRUE(again);
  peer.send(peer.pack(again->req, "hello"), "HELLO");
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 3);
  EXPECT_FALSE(exists(root_ + "/f"));
  ASSERT_EQ(peer.reports().size(), 1u);
  EXPECT_EQ(peer.reports()[0].path, "f");
}

TEST_F(HostileSender, RangeWrongOnceIsRetried) {
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 2 * kMiB);
  const std::string first = noise(kMiB, 1);
  const std::string second = noise(kMiB, 2);
  peer.send(peer.literal(request.req, 0, first), first);
  peer.send(peer.literal(request.req, 1, second), first);
  const auto retry = peer.wait<wire::RangeRetry>();
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->range, 1u);
  peer.send(peer.literal(request.req, 1, second), second);
  wire::FileEnd end;
  end.req = request.req;
  peer.send(end);
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 0);
  EXPECT_EQ(read_file(root_ + "/f"), first + second);
}

// Content is not given up for a hole that the sender only claims.
TEST_F(HostileSender, HoleInAnEqualRangeThatIsNoneIsRetried) {
  const std::string old = noise(2 * kMiB, 1);
  write_file(root_ + "/f", old);
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 2 * kMiB);
  peer.send(wire::RangeRun{request.req, wire::OpKind::kSame, 0, 1});
  wire::RangeData data = peer.literal(request.req, 1, "");
  data.digest.clear();
  data.ops = {{wire::OpKind::kSame, kMiB / 2, 0}, {wire::OpKind::kHole, kMiB / 2, 0}};
  peer.send(data);
  const auto retry = peer.wait<wire::RangeRetry>();
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->range, 1u);
  const std::string second = noise(kMiB, 2);
  peer.send(peer.literal(request.req, 1, second), second);
  wire::FileEnd end;
  end.req = request.req;
  peer.send(end);
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 0);
  EXPECT_EQ(read_file(root_ + "/f"), old.substr(0, kMiB) + second);
}

TEST_F(HostileSender, RangeWrongTwiceIsAnItemError) {
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 2 * kMiB);
  const std::string good = noise(kMiB, 1);
  const std::string bad = noise(kMiB, 2);
  peer.send(peer.literal(request.req, 0, good), bad);
  ASSERT_TRUE(peer.wait<wire::RangeRetry>());
  peer.send(peer.literal(request.req, 0, good), bad);
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 3);
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

// ---- links in the way

TEST_F(HostileSender, DirectoryThatWasListedAsALink) {
  ScriptedPeer peer(root_);
  peer.begin_push();
  peer.send(dir_list(0, 0, "", {link_entry("d", "../outside")}));
  peer.send(dir_list(1, 0, "d", {file_entry("file", 5)}));
  peer.end_list();
  const auto request = peer.wait<wire::FileRequest>();
  ASSERT_TRUE(request);
  peer.send(peer.pack(request->req, "hello"), "hello");
  (void)peer.wait<wire::Finish>();
  expect_outside_untouched();
}

TEST_F(HostileSender, LinksThatStandAtTheDestination) {
  std::filesystem::create_directory_symlink("../outside", root_ + "/d");
  std::filesystem::create_symlink("../outside/file", root_ + "/f");
  std::filesystem::create_symlink("../outside/file", root_ + "/" + temp_name("f"));
  ScriptedPeer peer(root_);
  peer.begin_push();
  peer.send(dir_list(0, 0, "", {dir_entry("d"), file_entry("f", 5)}));
  peer.send(dir_list(1, 0, "d", {file_entry("file", 5)}));
  peer.end_list();
  for (int i = 0; i < 2; ++i) {
    const auto request = peer.wait<wire::FileRequest>();
    ASSERT_TRUE(request);
    peer.send(peer.pack(request->req, "hello"), "hello");
  }
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 0);
  expect_outside_untouched();
  EXPECT_EQ(read_file(root_ + "/f"), "hello");
  EXPECT_EQ(read_file(root_ + "/d/file"), "hello");
  EXPECT_FALSE(exists(root_ + "/" + temp_name("f")));
}

TEST_F(HostileSender, LinkPlantedBetweenListAndContent) {
  ScriptedPeer peer(root_);
  peer.begin_push();
  peer.send(dir_list(0, 0, "", {dir_entry("d")}));
  peer.send(dir_list(1, 0, "d", {file_entry("file", 5), file_entry("large", 2 * kMiB)}));
  peer.end_list();
  const auto small = peer.wait<wire::FileRequest>();
  const auto large = peer.wait<wire::FileRequest>();
  ASSERT_TRUE(small && large);
  std::filesystem::rename(root_ + "/d", root_ + "/moved");
  std::filesystem::create_directory_symlink("../outside", root_ + "/d");
  peer.send(peer.pack(small->req, "hello"), "hello");
  peer.send(wire::RangeRun{large->req, wire::OpKind::kHole, 0, 2});
  wire::FileEnd end;
  end.req = large->req;
  peer.send(end);
  (void)peer.wait<wire::Finish>();
  expect_outside_untouched();
}

// An interrupted run's temporary that has a second name elsewhere is not written into.
TEST_F(HostileSender, TemporaryWithASecondName) {
  const std::string old = noise(2 * kMiB, 9);
  write_file(outside_ + "/file", old);
  ASSERT_EQ(::link((outside_ + "/file").c_str(), (root_ + "/" + temp_name("f")).c_str()), 0);
  ScriptedPeer peer(root_);
  const wire::FileRequest request = ask(peer, 2 * kMiB);
  EXPECT_EQ(request.kind, wire::RequestKind::kWhole);
  peer.send(wire::RangeRun{request.req, wire::OpKind::kHole, 0, 2});
  wire::FileEnd end;
  end.req = request.req;
  peer.send(end);
  peer.finish();
  EXPECT_EQ(peer.exit_code(), 0);
  EXPECT_EQ(read_file(outside_ + "/file"), old);
  EXPECT_EQ(read_file(root_ + "/f"), std::string(2 * kMiB, '\0'));
}

}  // namespace
}  // namespace volferry::session
