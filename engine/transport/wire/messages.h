// SPDX-License-Identifier: Apache-2.0
// The messages of the protocol as structs. Each travels in one frame (frame.h): its fields in the
// frame's head, bulk bytes in the frame's body. `encode` gives the head; `decode` checks every
// limit and value range and fails with kProtocol. Names of entries are decoded as single path
// components: not empty (but for the root of an image), no '/', no NUL, not "." or "..". S is the
// sending end of the volume, R the receiving one, C the client, V the server.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/transport/wire/limits.h"

namespace volferry::wire {

enum class MessageType : std::uint8_t {
  kHello = 1,
  kHelloAck = 2,
  kRefuse = 3,
  kCredit = 4,
  kPing = 5,
  kGoodbye = 6,

  kStart = 16,
  kStartAck = 17,
  kBeginPass = 18,
  kListEnd = 19,
  kFinish = 20,
  kFinishAck = 21,

  kDirList = 32,
  kDirRelease = 33,

  kFileRequest = 48,
  kSegmentRequest = 49,
  kFineRequest = 50,
  kFineHashes = 51,
  kRollingRequest = 52,
  kRollingSignature = 53,
  kRangeRetry = 54,
  kFileCancel = 55,

  kPack = 64,
  kRangeData = 65,
  kRangeRun = 66,
  kFileEnd = 67,

  kItemReport = 80,
  kItemChange = 81,
  kProgress = 82,
};

// How a frame is queued and bounded. Control frames are never held back by credit (their number is
// bounded by the protocol itself); list and data frames each spend the credit their receiver has
// granted.
enum class FrameClass : std::uint8_t { kControl, kList, kData };
FrameClass frame_class(MessageType type);

using Digest = std::vector<std::uint8_t>;  // 16 bytes (xxh3) or 32 (sha256); empty: none

enum class HashKind : std::uint8_t { kXxh3 = 0, kSha256 = 1 };

// ---- connection

// The first frame of each connection, C to V.
struct Hello {
  std::uint16_t major = kVersionMajor;
  std::uint16_t minor = kVersionMinor;
  std::uint64_t features = 0;
  std::uint32_t stream = 0;                   // 0: the first connection of a session
  std::array<std::uint8_t, 16> session_id{};  // joins: the session of the first connection
  std::array<std::uint8_t, 32> join_token{};  // joins: proof of that session (see docs/protocol.md)
  std::uint64_t list_credit = 0;              // bytes of list frames that C grants V at the start
  std::uint64_t data_credit = 0;
  std::string agent;
  std::vector<std::uint8_t> identity;  // opaque to the engine
  bool operator==(const Hello&) const = default;
};
struct HelloAck {
  std::uint16_t major = kVersionMajor;
  std::uint16_t minor = kVersionMinor;
  std::uint64_t features = 0;
  std::array<std::uint8_t, 16> session_id{};
  std::uint32_t max_streams = 1;  // connections that V accepts for this session
  std::uint64_t list_credit = 0;
  std::uint64_t data_credit = 0;
  std::string agent;
  std::vector<std::uint8_t> identity;
  bool operator==(const HelloAck&) const = default;
};
// Why the peer goes no further; the connection then ends. `code` is the peer's exit code.
struct Refuse {
  std::uint32_t code = 0;
  std::string text;
  bool operator==(const Refuse&) const = default;
};
// More room for frames of these classes, in bytes of charge (Frame::charge).
struct Credit {
  std::uint64_t list = 0;
  std::uint64_t data = 0;
  bool operator==(const Credit&) const = default;
};

// ---- session

enum class Direction : std::uint8_t { kPush = 0, kPull = 1 };  // push: the client is S
enum class CompressMode : std::uint8_t { kAuto = 0, kOff = 1, kZstd = 2 };
enum class RootKind : std::uint8_t { kMissing = 0, kDirectory = 1, kFile = 2, kBlockDevice = 3 };

// What both ends must agree on, bit by bit in Start::flags.
enum StartFlag : std::uint64_t {
  kFlagDelete = 1u << 0,
  kFlagDryRun = 1u << 1,
  kFlagItemize = 1u << 2,
  kFlagChecksum = 1u << 3,
  kFlagOneFileSystem = 1u << 4,
  kFlagInplace = 1u << 5,
  kFlagNoOwner = 1u << 6,
  kFlagNoPerms = 1u << 7,
  kFlagNoTimes = 1u << 8,
  kFlagNoXattrs = 1u << 9,
  kFlagNoAcls = 1u << 10,
  kFlagNoHardlinks = 1u << 11,
  kFlagNoDevices = 1u << 12,
  kFlagVerifyOnly = 1u << 13,   // `verify`: compare everything, change nothing
  kFlagVerifyAfter = 1u << 14,  // `sync --verify`
  kFlagDurable = 1u << 15,
  kFlagProgress = 1u << 16,  // R and S send Progress messages
};

struct FilterRule {
  bool include = false;
  std::string pattern;
  bool operator==(const FilterRule&) const = default;
};

// C to V, once a session.
struct Start {
  Direction direction = Direction::kPush;
  std::uint64_t flags = 0;
  HashKind hash = HashKind::kXxh3;
  std::vector<std::uint8_t> hash_secret;  // drawn by C for this session
  CompressMode compress = CompressMode::kAuto;
  std::int32_t compress_level = 0;          // with kZstd; 0: the default
  std::uint64_t bandwidth_limit = 0;        // bytes a second for V's sending; 0: none
  std::string subpath;                      // below V's root, '/'-separated; empty: the root itself
  RootKind root_kind = RootKind::kMissing;  // C's own root
  std::uint64_t root_size = 0;              // of a file or device
  std::vector<FilterRule> filters;
  bool operator==(const Start&) const = default;
};
// V to C: what V's root is.
struct StartAck {
  RootKind root_kind = RootKind::kMissing;
  std::uint64_t root_size = 0;
  bool operator==(const StartAck&) const = default;
};

enum class PassKind : std::uint8_t { kSync = 0, kVerify = 1 };
// R to S: walk and list the volume.
struct BeginPass {
  std::uint32_t pass = 0;
  PassKind kind = PassKind::kSync;
  bool operator==(const BeginPass&) const = default;
};
// S to R, after the last DirList of a pass.
struct ListEnd {
  std::uint32_t pass = 0;
  std::uint64_t read_errors = 0;  // items that could not be read or listed so far
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;
  std::uint64_t bytes = 0;
  bool operator==(const ListEnd&) const = default;
};
// The result as the sending end of this message sees it. R sends it once all passes are over, S
// answers with its own in FinishAck. Counters that an end does not know are 0.
struct Finish {
  std::uint32_t exit_code = 0;
  std::string text;  // of the fatal error, empty otherwise
  std::uint64_t files_total = 0;
  std::uint64_t files_transferred = 0;
  std::uint64_t files_deleted = 0;
  std::uint64_t dirs_total = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t literal_bytes = 0;
  std::uint64_t matched_bytes = 0;
  std::uint64_t zero_bytes = 0;
  std::uint64_t owner_skipped = 0;  // items whose owner could not be set for lack of privilege
  std::uint64_t differences = 0;
  bool operator==(const Finish&) const = default;
};

// ---- list

enum class EntryType : std::uint8_t {
  kFile = 0,
  kDirectory = 1,
  kSymlink = 2,
  kFifo = 3,
  kSocket = 4,
  kCharDevice = 5,
  kBlockDevice = 6,
};

struct Xattr {
  std::string name;
  std::string value;
  bool operator==(const Xattr&) const = default;
};

struct EntryMeta {
  EntryType type = EntryType::kFile;
  std::uint16_t mode = 0;  // permission bits and setuid, setgid, sticky: 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;  // files and block devices in image mode
  std::int64_t mtime_s = 0;
  std::uint32_t mtime_ns = 0;        // < 1e9
  std::uint64_t rdev = 0;            // devices
  std::string link_target;           // symlinks
  std::uint64_t hardlink_group = 0;  // 0: no other name seen; equal numbers: names of one inode
  std::vector<Xattr> xattrs;  // sorted by name; ACLs are system.posix_acl_access and _default, as
                              // the kernel has them
  bool operator==(const EntryMeta&) const = default;
};

struct Entry {
  std::string name;
  EntryMeta meta;
  bool no_descend =
      false;  // a directory that S does not enter: a mount point under --one-file-system
  bool unreadable = false;  // a directory that S could not read: R must not delete below it
  bool operator==(const Entry&) const = default;
};

// One chunk of one directory, entries in ascending byte order of names; chunks of a directory
// follow each other without another directory in between, and a directory's list comes after its
// parent's last chunk.
struct DirList {
  std::uint32_t dir = 0;  // 0 is the root; numbers are never reused in a pass
  std::uint32_t parent = 0;
  std::string name;   // in the parent; empty for the root
  bool first = true;  // `meta` is present
  bool last = true;
  bool image = false;             // the root is a file or device: one entry with an empty name
  bool complete = true;           // with last: the directory was read without error
  EntryMeta meta;                 // of the directory itself
  std::uint32_t first_index = 0;  // index of entries[0] within the directory
  std::vector<Entry> entries;
  bool operator==(const DirList&) const = default;
};
// R to S: no file of this directory will be asked for again.
struct DirRelease {
  std::uint32_t dir = 0;
  bool operator==(const DirRelease&) const = default;
};

// ---- files. A request number `req` is chosen by R, unique in the session.

enum class RequestKind : std::uint8_t {
  kWhole = 0,   // send everything
  kDigest = 1,  // R holds the same number of bytes with this digest (small files); send only if it
                // differs
  kSegments = 2,  // R holds a basis; compare by SegmentRequests, which follow
};
enum RequestFlag : std::uint8_t {
  kRequestCompareOnly = 1,  // answer FileEnd kSame or kDiffers, send no content
  kRequestRolling = 2,      // content may have shifted: rolling match allowed
  kRequestOrdered =
      4,  // R writes in place: a copy may only read the basis at or after the range it builds
};

struct FileRequest {
  std::uint32_t req = 0;
  std::uint32_t dir = 0;
  std::uint32_t index = 0;
  RequestKind kind = RequestKind::kWhole;
  std::uint8_t flags = 0;
  std::uint64_t size = 0;        // as listed: S answers kChanged where it differs by then
  std::uint64_t basis_size = 0;  // kSegments
  Digest digest;                 // kDigest
  // As listed: S sends fresh metadata with the content where it has moved.
  std::int64_t mtime_s = 0;
  std::uint32_t mtime_ns = 0;
  bool operator==(const FileRequest&) const = default;
};

enum class RangeSigKind : std::uint8_t { kNone = 0, kZero = 1, kDigest = 2 };
struct RangeSig {
  RangeSigKind kind = RangeSigKind::kNone;  // kNone: R has nothing there
  Digest digest;
  bool operator==(const RangeSig&) const = default;
};
// R to S: R's signatures of ranges [segment * kRangesPerSegment, ...). Exactly one for each range
// of the source file in that segment. S answers each range once: by RangeData or inside a RangeRun.
struct SegmentRequest {
  std::uint32_t req = 0;
  std::uint32_t segment = 0;
  std::vector<RangeSig> ranges;
  bool operator==(const SegmentRequest&) const = default;
};
// S to R: these ranges differ, give the block hashes.
struct FineRequest {
  std::uint32_t req = 0;
  std::vector<std::uint64_t> ranges;
  bool operator==(const FineRequest&) const = default;
};
// R to S: one 32-bit hash for each 4 KiB block of R's range (the last may be short); none where the
// range is gone.
struct FineHashes {
  std::uint32_t req = 0;
  std::uint64_t range = 0;
  std::vector<std::uint32_t> blocks;
  bool operator==(const FineHashes&) const = default;
};
// S to R: give rolling signatures of this part of the basis.
struct RollingRequest {
  std::uint32_t req = 0;
  std::uint64_t offset = 0;       // a multiple of block_bytes
  std::uint64_t length = 0;       // at most 2 GiB
  std::uint32_t block_bytes = 0;  // 512 .. 131072, a power of two
  bool operator==(const RollingRequest&) const = default;
};
// R to S: whole blocks of that part, in order; `last` ends the answer.
struct RollingSignature {
  std::uint32_t req = 0;
  std::uint64_t first_block = 0;  // index within the requested part
  bool last = false;
  std::vector<std::uint32_t> weak;
  std::vector<std::uint64_t> strong;  // as many
  bool operator==(const RollingSignature&) const = default;
};
// R to S: the rebuilt range did not have the promised digest; send it as one literal.
struct RangeRetry {
  std::uint32_t req = 0;
  std::uint64_t range = 0;
  bool operator==(const RangeRetry&) const = default;
};
// R to S: forget this request (R failed on that file).
struct FileCancel {
  std::uint32_t req = 0;
  bool operator==(const FileCancel&) const = default;
};

enum class FileResult : std::uint8_t {
  kOk = 0,
  kSame = 1,     // kDigest and compare-only: equal
  kDiffers = 2,  // compare-only
  kChanged = 3,  // size, mtime or ctime moved while read: discard; `meta` is the new state
  kVanished = 4,
  kError = 5,  // os_errno and text
};

struct PackedFile {
  std::uint32_t req = 0;
  FileResult result = FileResult::kOk;
  bool has_meta = false;  // metadata moved since the list
  EntryMeta meta;
  std::int32_t os_errno = 0;
  std::string text;
  Digest digest;             // of the content (kOk)
  std::uint32_t length = 0;  // its bytes in the frame's body
  bool sparse = false;       // blocks of zeros were holes at the source
  bool operator==(const PackedFile&) const = default;
};
// S to R: whole small files. The body holds their bytes one after the other, or one zstd frame of
// that.
struct Pack {
  bool compressed = false;
  std::uint32_t raw_bytes = 0;  // of the body uncompressed
  std::vector<PackedFile> files;
  bool operator==(const Pack&) const = default;
};

enum class OpKind : std::uint8_t {
  kLiteral = 0,  // the next `length` bytes of the body
  kCopy = 1,     // from the basis at basis_offset
  kSame = 2,     // from the basis at the same offset
  kHole = 3,     // zeros, not allocated at the source
  kZero = 4,     // zeros, allocated at the source
};
struct RangeOp {
  OpKind kind = OpKind::kLiteral;
  std::uint32_t length = 0;
  std::uint64_t basis_offset = 0;  // kCopy
  bool operator==(const RangeOp&) const = default;
};
// S to R: one range. The ops' lengths add up to the range's length. Body: the literals, or one zstd
// frame of them.
struct RangeData {
  std::uint32_t req = 0;
  std::uint64_t range = 0;
  bool compressed = false;
  std::uint32_t raw_bytes = 0;
  Digest digest;  // of the whole range's content
  std::vector<RangeOp> ops;
  bool operator==(const RangeData&) const = default;
};
// S to R: `count` ranges from `first`, all same as R's basis, all hole, or all zero.
struct RangeRun {
  std::uint32_t req = 0;
  OpKind kind = OpKind::kSame;  // kSame, kHole or kZero
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const RangeRun&) const = default;
};
// S to R: the file's outcome. May overtake ranges on other streams: R counts ranges.
struct FileEnd {
  std::uint32_t req = 0;
  FileResult result = FileResult::kOk;
  bool has_meta = false;
  EntryMeta meta;
  std::int32_t os_errno = 0;
  std::string text;
  bool operator==(const FileEnd&) const = default;
};

// ---- reports, either way

enum class ReportKind : std::uint8_t {
  kError = 0,
  kChangedSource = 1,
  kVanished = 2,
  kWarning = 3,
  kDifference = 4
};
struct ItemReport {
  ReportKind kind = ReportKind::kError;
  std::string path;  // raw bytes, relative to the volume's root
  std::int32_t os_errno = 0;
  std::string text;
  bool operator==(const ItemReport&) const = default;
};
// R to C: one itemized change; `code` is the short change code as in docs.
struct ItemChange {
  std::string code;
  std::string path;
  std::string link_target;
  bool operator==(const ItemChange&) const = default;
};
// A snapshot of the sender's counters, at most a few a second.
struct Progress {
  std::uint8_t phase = 0;
  std::uint64_t files_total = 0;
  std::uint64_t files_done = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_done = 0;
  bool operator==(const Progress&) const = default;
};

// The message type of each struct, and its codec.
#define VF_MESSAGE(Type)                                                   \
  inline MessageType type_of(const Type&) { return MessageType::k##Type; } \
  std::vector<std::uint8_t> encode(const Type& message);                   \
  Status decode(base::Bytes head, Type& message)

VF_MESSAGE(Hello);
VF_MESSAGE(HelloAck);
VF_MESSAGE(Refuse);
VF_MESSAGE(Credit);
VF_MESSAGE(Start);
VF_MESSAGE(StartAck);
VF_MESSAGE(BeginPass);
VF_MESSAGE(ListEnd);
VF_MESSAGE(Finish);
VF_MESSAGE(DirList);
VF_MESSAGE(DirRelease);
VF_MESSAGE(FileRequest);
VF_MESSAGE(SegmentRequest);
VF_MESSAGE(FineRequest);
VF_MESSAGE(FineHashes);
VF_MESSAGE(RollingRequest);
VF_MESSAGE(RollingSignature);
VF_MESSAGE(RangeRetry);
VF_MESSAGE(FileCancel);
VF_MESSAGE(Pack);
VF_MESSAGE(RangeData);
VF_MESSAGE(RangeRun);
VF_MESSAGE(FileEnd);
VF_MESSAGE(ItemReport);
VF_MESSAGE(ItemChange);
VF_MESSAGE(Progress);
#undef VF_MESSAGE

// True for a name that may be used as one component below a directory: 1..255 bytes, no '/', no
// NUL, not "." or "..".
bool valid_name(std::string_view name);

}  // namespace volferry::wire
