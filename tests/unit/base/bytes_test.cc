// SPDX-License-Identifier: Apache-2.0
#include "engine/base/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace volferry::base {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(ByteWriter, IsLittleEndian) {
  ByteWriter writer;
  writer.u8(1);
  writer.u16(0x0302);
  writer.u32(0x07060504);
  writer.u64(0x0f0e0d0c0b0a0908);
  const std::vector<std::uint8_t> bytes = writer.take();
  ASSERT_EQ(bytes.size(), 15U);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], i + 1);
}

TEST(ByteWriter, WritesVarintsAsLeb128) {
  const auto coded = [](std::uint64_t value) {
    ByteWriter writer;
    writer.varint(value);
    return to_hex(writer.take());
  };
  EXPECT_EQ(coded(0), "00");
  EXPECT_EQ(coded(127), "7f");
  EXPECT_EQ(coded(128), "8001");
  EXPECT_EQ(coded(300), "ac02");
  EXPECT_EQ(coded(kMost), "ffffffffffffffffff01");
}

TEST(ByteReader, ReadsWhatTheWriterWrote) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t value = random() >> (random() % 64);
    ByteWriter writer;
    writer.u8(static_cast<std::uint8_t>(value));
    writer.u16(static_cast<std::uint16_t>(value));
    writer.u32(static_cast<std::uint32_t>(value));
    writer.u64(value);
    writer.varint(value);
    writer.svarint(static_cast<std::int64_t>(value));
    writer.svarint(-static_cast<std::int64_t>(value >> 1));
    writer.text("name");
    EXPECT_GT(writer.size(), 20U);
    const std::vector<std::uint8_t> bytes = writer.take();
    ByteReader reader(bytes);
    EXPECT_EQ(reader.u8(), static_cast<std::uint8_t>(value));
    EXPECT_EQ(reader.u16(), static_cast<std::uint16_t>(value));
    EXPECT_EQ(reader.u32(), static_cast<std::uint32_t>(value));
    EXPECT_EQ(reader.u64(), value);
    EXPECT_EQ(reader.varint(), value);
    EXPECT_EQ(reader.svarint(), static_cast<std::int64_t>(value));
    EXPECT_EQ(reader.svarint(), -static_cast<std::int64_t>(value >> 1));
    EXPECT_EQ(reader.text(4), "name");
    EXPECT_TRUE(reader.finish("record"));
  }
}

TEST(ByteReader, CodesTheExtremesOfSignedNumbers) {
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                   std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    ByteWriter writer;
    writer.svarint(value);
    const std::vector<std::uint8_t> bytes = writer.take();
    EXPECT_EQ(ByteReader(bytes).svarint(), value);
  }
}

TEST(ByteReader, FailsForGoodPastTheEnd) {
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u16(), 0x0201);
  EXPECT_EQ(reader.u16(), 0);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0) << "the byte that is left must not be read after a failure";
  EXPECT_EQ(reader.remaining(), 0U);
  const Status status = reader.finish("record");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kProtocol);
  EXPECT_NE(status.error().context.find("record"), std::string::npos);
}

TEST(ByteReader, FailsWithBytesLeftOver) {
  const std::vector<std::uint8_t> bytes = {1, 2};
  ByteReader reader(bytes);
  reader.u8();
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.finish("record"));
}

TEST(ByteReader, RefusesVarintsOfMoreThan64Bits) {
  for (const char* text : {"ffffffffffffffffff02", "ffffffffffffffffffff01", "8080", "80"}) {
    const std::vector<std::uint8_t> bytes = from_hex(text);
    ByteReader reader(bytes);
    reader.varint();
    EXPECT_FALSE(reader.ok()) << text;
  }
}

TEST(ByteReader, HoldsCountsAndBlobsToTheirLimits) {
  ByteWriter writer;
  writer.varint(10);
  const std::vector<std::uint8_t> ten = writer.take();
  EXPECT_EQ(ByteReader(ten).count(10), 10U);
  ByteReader over(ten);
  EXPECT_EQ(over.count(9), 0U);
  EXPECT_FALSE(over.ok());
  // A length that the input does not hold.
  ByteReader blob(ten);
  EXPECT_TRUE(blob.blob(100).empty());
  EXPECT_FALSE(blob.ok());
  ByteReader raw(ten);
  EXPECT_TRUE(raw.raw(std::numeric_limits<std::size_t>::max()).empty());
  EXPECT_FALSE(raw.ok());
}

TEST(ByteReader, BlobsPointIntoTheInput) {
  ByteWriter writer;
  writer.blob(as_bytes("abc"));
  const std::vector<std::uint8_t> bytes = writer.take();
  ByteReader reader(bytes);
  const Bytes blob = reader.blob(3);
  EXPECT_EQ(blob.data(), bytes.data() + 1);
  EXPECT_EQ(as_text(blob), "abc");
}

TEST(Hex, GoesBothWays) {
  EXPECT_EQ(to_hex(from_hex("00ff10aB")), "00ff10ab");
  EXPECT_TRUE(from_hex("abc").empty());
  EXPECT_TRUE(from_hex("0g").empty());
  EXPECT_TRUE(from_hex("").empty());
  EXPECT_EQ(to_hex({}), "");
}

}  // namespace
}  // namespace volferry::base
