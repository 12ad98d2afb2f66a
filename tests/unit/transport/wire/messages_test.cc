// SPDX-License-Identifier: Apache-2.0
// Every message survives encode and decode; every truncation of it is refused; values out of range
// are refused.
#include "engine/transport/wire/messages.h"

#include <gtest/gtest.h>

namespace volferry::wire {
namespace {

Digest digest_of(std::size_t size) {
  Digest digest(size);
  for (std::size_t i = 0; i < size; ++i) digest[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return digest;
}

EntryMeta file_meta() {
  EntryMeta meta;
  meta.mode = 06755;
  meta.uid = 4294967294;
  meta.gid = 1000;
  meta.size = 1ull << 42;
  meta.mtime_s = -62135596800;
  meta.mtime_ns = 999'999'999;
  meta.hardlink_group = 77;
  meta.xattrs = {{"security.capability", std::string("\x01\x00\x02", 3)}, {"user.empty", ""}};
  return meta;
}

EntryMeta symlink_meta() {
  EntryMeta meta;
  meta.type = EntryType::kSymlink;
  meta.link_target = "../\xff there";
  return meta;
}

EntryMeta device_meta() {
  EntryMeta meta;
  meta.type = EntryType::kCharDevice;
  meta.rdev = (1ull << 40) + 3;
  return meta;
}

DirList some_list() {
  DirList list;
  list.dir = 3;
  list.parent = 1;
  list.name = "dir";
  list.meta.type = EntryType::kDirectory;
  list.meta.mode = 01777;
  list.first_index = 4096;
  list.entries = {{"a", file_meta()},
                  {"b", symlink_meta()},
                  {"c\n", device_meta(), true, false},
                  {"d", {}, false, true}};
  return list;
}

// Encodes, decodes, compares; then checks that no prefix of the head passes for a whole one, nor a
// longer head.
template <typename Message>
void expect_survives(const Message& message) {
  const std::vector<std::uint8_t> head = encode(message);
  Message decoded;
  const Status status = decode(head, decoded);
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_EQ(decoded, message);
  for (std::size_t length = 0; length < head.size(); ++length) {
    Message cut;
    const Status refused = decode(base::Bytes(head).first(length), cut);
    ASSERT_FALSE(refused) << "prefix of " << length << " bytes";
    EXPECT_EQ(refused.error().code, Code::kProtocol);
  }
  std::vector<std::uint8_t> longer = head;
  longer.push_back(0);
  Message trailing;
  EXPECT_FALSE(decode(longer, trailing));
}

template <typename Message>
void expect_refused(const Message& message) {
  Message decoded;
  const Status status = decode(encode(message), decoded);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kProtocol);
}

TEST(Messages, HelloSurvives) {
  Hello hello;
  hello.features = 5;
  hello.stream = 2;
  hello.session_id.fill(9);
  hello.join_token.fill(8);
  hello.list_credit = 1 << 20;
  hello.data_credit = 1 << 26;
  hello.agent = "volferry/0.1";
  hello.identity = {1, 2, 3};
  expect_survives(hello);
}

TEST(Messages, HelloAckSurvives) {
  HelloAck ack;
  ack.session_id.fill(3);
  ack.max_streams = 8;
  ack.data_credit = 123456;
  ack.agent = "x";
  expect_survives(ack);
}

TEST(Messages, HelloOfAnotherMajorNamesBothVersions) {
  Hello hello;
  hello.major = 2;
  hello.minor = 7;
  Hello decoded;
  const Status status = decode(encode(hello), decoded);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context, "version 1.0 here, 2.7 there");
}

TEST(Messages, HelloOfALaterMinorMayBeLonger) {
  Hello hello;
  hello.minor = kVersionMinor + 1;
  std::vector<std::uint8_t> head = encode(hello);
  head.push_back(42);
  Hello decoded;
  EXPECT_TRUE(decode(head, decoded));
}

TEST(Messages, HelloWithoutMagicIsNoPeer) {
  std::vector<std::uint8_t> head = encode(Hello{});
  head[0] ^= 1;
  Hello decoded;
  EXPECT_FALSE(decode(head, decoded));
}

TEST(Messages, ConnectionMessagesSurvive) {
  expect_survives(Refuse{30, "not you"});
  expect_survives(Credit{100, 1ull << 30});
}

TEST(Messages, SessionMessagesSurvive) {
  Start start;
  start.direction = Direction::kPull;
  start.flags = kFlagDelete | kFlagProgress;
  start.hash = HashKind::kSha256;
  start.hash_secret = digest_of(192);
  start.compress = CompressMode::kZstd;
  start.compress_level = -5;
  start.bandwidth_limit = 50'000'000;
  start.subpath = "a/b c";
  start.root_kind = RootKind::kBlockDevice;
  start.root_size = 1ull << 40;
  start.filters = {{true, "*.txt"}, {false, "/tmp/"}};
  expect_survives(start);
  expect_survives(StartAck{RootKind::kFile, 17});
  expect_survives(BeginPass{3, PassKind::kVerify});
  expect_survives(ListEnd{3, 1, 2, 3, 1ull << 50});
  Finish finish{20, "no space", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  expect_survives(finish);
}

TEST(Messages, ListMessagesSurvive) {
  expect_survives(some_list());
  DirList more = some_list();
  more.first = false;
  more.meta = {};
  more.last = false;
  expect_survives(more);
  DirList image;
  image.image = true;
  image.entries = {{"", file_meta()}};
  expect_survives(image);
  expect_survives(DirRelease{12345});
}

TEST(Messages, RequestMessagesSurvive) {
  expect_survives(FileRequest{1, 2, 3, RequestKind::kSegments, kRequestRolling, 1000, 2000, {}});
  expect_survives(
      FileRequest{1, 2, 3, RequestKind::kDigest, 0, 10, 0, digest_of(16), -5, 999'999'999});
  SegmentRequest segment{7, 9, {}};
  segment.ranges = {{},
                    {RangeSigKind::kZero, {}},
                    {RangeSigKind::kDigest, digest_of(16)},
                    {RangeSigKind::kDigest, digest_of(32)}};
  expect_survives(segment);
  expect_survives(FineRequest{7, {0, 5, 1ull << 40}});
  expect_survives(FineHashes{7, 5, {1, 0xffffffff, 3}});
  expect_survives(RollingRequest{7, 8192, 2ull << 30, 4096});
  expect_survives(RollingSignature{7, 100, true, {1, 2}, {3, ~0ull}});
  expect_survives(RangeRetry{7, 12});
  expect_survives(FileCancel{7});
}

TEST(Messages, DataMessagesSurvive) {
  Pack pack;
  pack.compressed = true;
  pack.raw_bytes = 30;
  pack.files.resize(3);
  pack.files[0] = {1, FileResult::kOk, true, file_meta(), 0, "", digest_of(16), 30};
  pack.files[1] = {2, FileResult::kError, false, {}, 13, "open: denied", {}, 0};
  pack.files[2] = {3, FileResult::kSame, false, {}, 0, "", {}, 0};
  expect_survives(pack);
  RangeData data{4, 1000, true, 4096, digest_of(32), {}};
  data.ops = {{OpKind::kLiteral, 4096, 0},
              {OpKind::kCopy, 100, 1ull << 41},
              {OpKind::kSame, 1, 0},
              {OpKind::kHole, 2, 0},
              {OpKind::kZero, 3, 0}};
  expect_survives(data);
  expect_survives(RangeRun{4, OpKind::kHole, 3, 1ull << 30});
  expect_survives(FileEnd{4, FileResult::kChanged, true, file_meta(), 0, ""});
  expect_survives(FileEnd{4, FileResult::kError, false, {}, 5, "read f @0: I/O error"});
}

TEST(Messages, ReportMessagesSurvive) {
  expect_survives(ItemReport{ReportKind::kDifference, "a/\xfe", 0, "content"});
  expect_survives(ItemChange{">f+++++++", "x/y", "target"});
  expect_survives(Progress{2, 10, 5, 1ull << 40, 7});
}

TEST(Messages, UnsafeNamesAreRefused) {
  for (const std::string& name : {std::string("."), std::string(".."), std::string("a/b"),
                                  std::string(), std::string("a\0b", 3), std::string(256, 'x')}) {
    DirList list;
    list.entries = {{name, {}}};
    expect_refused(list);
    DirList named;
    named.dir = 1;
    named.name = name;
    expect_refused(named);
  }
  EXPECT_TRUE(valid_name(std::string(255, 'x')));
  EXPECT_TRUE(valid_name("..."));
}

TEST(Messages, EntriesOutOfOrderAreRefused) {
  DirList list;
  list.entries = {{"b", {}}, {"a", {}}};
  expect_refused(list);
  list.entries = {{"a", {}}, {"a", {}}};
  expect_refused(list);
}

TEST(Messages, ImagesHaveOneNamelessFile) {
  DirList image;
  image.image = true;
  image.entries = {{"", {}}, {"", {}}};
  expect_refused(image);
  image.entries = {{"name", {}}};
  expect_refused(image);
}

TEST(Messages, MetadataOutOfRangeIsRefused) {
  const auto refused = [](auto change) {
    FileEnd end;
    end.has_meta = true;
    change(end.meta);
    expect_refused(end);
  };
  refused([](EntryMeta& meta) { meta.mtime_ns = 1'000'000'000; });
  refused([](EntryMeta& meta) { meta.mode = 010000; });
  refused([](EntryMeta& meta) { meta.size = 1ull << 63; });
  refused([](EntryMeta& meta) { meta.xattrs = {{"b", ""}, {"a", ""}}; });
  refused([](EntryMeta& meta) { meta.xattrs = {{"", "value"}}; });
  refused([](EntryMeta& meta) { meta.xattrs = {{"a", std::string(65537, 'x')}}; });
  refused([](EntryMeta& meta) {
    meta.type = EntryType::kSymlink;
    meta.link_target = std::string("a\0b", 3);
  });
}

TEST(Messages, SubpathsStayBelowTheRoot) {
  for (const char* path : {"/etc", "..", "a/../b", "a/..", "./a"}) {
    Start start;
    start.subpath = path;
    expect_refused(start);
  }
  Start start;
  start.subpath = "a//b/";
  Start decoded;
  EXPECT_TRUE(decode(encode(start), decoded));
}

TEST(Messages, RangeDataMustAddUp) {
  RangeData empty_op{1, 0, false, 0, {}, {{OpKind::kZero, 0, 0}}};
  expect_refused(empty_op);
  RangeData too_long{1, 0, false, 0, {}, {{OpKind::kZero, 1 << 20, 0}, {OpKind::kSame, 1, 0}}};
  expect_refused(too_long);
  RangeData literals{1, 0, false, 5, {}, {{OpKind::kLiteral, 4, 0}}};
  expect_refused(literals);
  RangeData digest{1, 0, false, 0, digest_of(5), {}};
  expect_refused(digest);
}

TEST(Messages, PackLengthsMustAddUp) {
  Pack pack;
  pack.raw_bytes = 3;
  pack.files.resize(1);
  pack.files[0].length = 4;
  expect_refused(pack);
}

TEST(Messages, RangeRunsAreOfOneKind) {
  expect_refused(RangeRun{1, OpKind::kLiteral, 0, 1});
  expect_refused(RangeRun{1, OpKind::kCopy, 0, 1});
  expect_refused(RangeRun{1, OpKind::kSame, 0, 0});
  expect_refused(RangeRun{1, OpKind::kSame, 1ull << 43, 1ull << 43});
}

TEST(Messages, RollingGeometryIsChecked) {
  expect_refused(RollingRequest{1, 0, 100, 0});
  expect_refused(RollingRequest{1, 0, 100, 256});
  expect_refused(RollingRequest{1, 0, 100, 5000});
  expect_refused(RollingRequest{1, 100, 100, 512});
  expect_refused(RollingRequest{1, 0, (2ull << 30) + 1, 512});
}

TEST(Messages, RequestsOutOfRangeAreRefused) {
  expect_refused(FileRequest{1, 2, 3, RequestKind::kDigest, 0, 10, 0, {}});
  expect_refused(FileRequest{1, 2, 3, RequestKind::kWhole, 8, 10, 0, {}});
  expect_refused(FineRequest{1, std::vector<std::uint64_t>(1025)});
  expect_refused(FineRequest{1, {1ull << 44}});
  expect_refused(SegmentRequest{1, 0, std::vector<RangeSig>(65)});
  expect_refused(FineHashes{1, 0, std::vector<std::uint32_t>(257)});
}

// A few bytes that announce a huge count must not make the decoder reserve memory for it: with 16
// bytes left, no count above 16 can be true.
TEST(Messages, AnnouncedCountsAreBoundedByWhatIsThere) {
  base::ByteWriter out;
  out.varint(1);
  out.varint(0);
  out.varint(kMaxRollingBlocks);
  out.u8(0);
  RollingSignature signature;
  EXPECT_FALSE(decode(out.take(), signature));
  EXPECT_EQ(signature.weak.capacity(), 0u);
  base::ByteWriter list;
  list.varint(0);
  list.varint(0);
  list.text("");
  list.u8(2);
  list.varint(0);
  list.varint(kMaxListEntries);
  list.u8(0);
  DirList decoded;
  EXPECT_FALSE(decode(list.take(), decoded));
  EXPECT_EQ(decoded.entries.capacity(), 0u);
}

TEST(Messages, LongTextsAreCutNotRefused) {
  Refuse refuse{1, std::string(kMaxText + 100, 'x')};
  Refuse decoded;
  ASSERT_TRUE(decode(encode(refuse), decoded));
  EXPECT_EQ(decoded.text.size(), kMaxText);
}

}  // namespace
}  // namespace volferry::wire
