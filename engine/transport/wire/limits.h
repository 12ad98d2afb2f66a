// SPDX-License-Identifier: Apache-2.0
// Every limit of the protocol. A decoder checks a length against one of these before it allocates
// or loops. docs/protocol.md repeats them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace volferry::wire {

inline constexpr std::uint32_t kMagic = 0x59524656;  // "VFRY", little-endian
inline constexpr std::uint16_t kVersionMajor = 1;
inline constexpr std::uint16_t kVersionMinor = 0;

inline constexpr std::uint64_t kRangeBytes =
    1 << 20;                                        // the unit of comparison, data and verification
inline constexpr std::uint64_t kBlockBytes = 4096;  // the fine unit inside a range
inline constexpr std::uint32_t kRangesPerSegment =
    64;  // ranges whose signatures travel in one request
inline constexpr std::size_t kBlocksPerRange = kRangeBytes / kBlockBytes;

inline constexpr std::size_t kMaxHead = 10u << 20;       // the structured part of any frame
inline constexpr std::size_t kMaxHelloHead = 16u << 10;  // of any frame before the session is up
inline constexpr std::size_t kMaxBody = kRangeBytes;     // the bulk part
inline constexpr std::size_t kHeapBodyBytes =
    128u << 10;  // bodies up to this live on the heap and count as they are

inline constexpr std::size_t kMaxName = 255;
inline constexpr std::size_t kMaxLinkTarget = 4096;
inline constexpr std::size_t kMaxXattrs = 32768;
inline constexpr std::size_t kMaxXattrName = 255;
inline constexpr std::size_t kMaxXattrValue = 65536;
inline constexpr std::size_t kMaxXattrBytes = 8u << 20;  // names and values of one entry together
inline constexpr std::size_t kMaxListEntries = 4096;     // of one DirList frame
inline constexpr std::size_t kMaxPackFiles = 4096;       // of one Pack frame
inline constexpr std::size_t kMaxOps = 2 * kBlocksPerRange + 4096;  // of one RangeData frame
inline constexpr std::size_t kMaxRollingBlocks = 1u << 16;          // of one RollingSignature frame
inline constexpr std::size_t kMaxFineRanges = 1024;                 // of one FineRequest frame
inline constexpr std::uint64_t kMaxRollingBytes = 2ull << 30;       // of one RollingRequest
inline constexpr std::uint32_t kMinRollingBlock = 512;
inline constexpr std::uint32_t kMaxRollingBlock = 128u << 10;
inline constexpr std::size_t kMaxFilters = 65536;
inline constexpr std::size_t kMaxText =
    8192;  // error texts, agent names, sub-paths, one path component chain
inline constexpr std::size_t kMaxPath =
    1u << 20;  // a reported path (trees may be deeper than PATH_MAX)
inline constexpr std::size_t kMaxIdentity = 4096;
inline constexpr std::size_t kMaxSecret = 192;
inline constexpr std::size_t kMaxDigest = 32;
inline constexpr std::uint64_t kMaxCredit = 1ull
                                            << 40;  // of one grant, and of all that is outstanding
inline constexpr std::size_t kFrameCharge =
    64;  // what any frame costs of the credit beside its bytes

}  // namespace volferry::wire
