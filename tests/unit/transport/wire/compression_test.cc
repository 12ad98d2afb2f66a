// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/compression.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "engine/transport/wire/limits.h"

namespace volferry::wire {
namespace {

std::vector<std::uint8_t> text_bytes(std::size_t size) {
  std::vector<std::uint8_t> bytes;
  for (unsigned line = 0; bytes.size() < size; ++line) {
    const std::string text = "line " + std::to_string(line) + " of a log\n";
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  bytes.resize(size);
  return bytes;
}

std::vector<std::uint8_t> random_bytes(std::size_t size) {
  std::mt19937_64 random(42);
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(Compressor, TextShrinksAndComesBack) {
  Compressor compressor;
  for (const std::size_t size : {std::size_t{100}, std::size_t{4096}, kMaxBody}) {
    const std::vector<std::uint8_t> raw = text_bytes(size);
    const base::Buffer packed = compressor.compress(raw, 0);
    ASSERT_FALSE(packed.empty());
    EXPECT_LT(packed.size(), raw.size());
    std::vector<std::uint8_t> back(raw.size());
    ASSERT_TRUE(compressor.decompress(packed.bytes(), back));
    EXPECT_EQ(back, raw);
  }
}

TEST(Compressor, RandomBytesAreLeftAlone) {
  Compressor compressor;
  EXPECT_TRUE(compressor.compress(random_bytes(65536), 3).empty());
  EXPECT_TRUE(compressor.compress({}, 3).empty());
}

TEST(Compressor, AnotherSizeThanAnnouncedIsRefused) {
  Compressor compressor;
  const std::vector<std::uint8_t> raw = text_bytes(10000);
  const base::Buffer packed = compressor.compress(raw, 1);
  std::vector<std::uint8_t> small(9999);
  EXPECT_FALSE(compressor.decompress(packed.bytes(), small));
  std::vector<std::uint8_t> large(10001);
  EXPECT_FALSE(compressor.decompress(packed.bytes(), large));
  EXPECT_FALSE(compressor.decompress(packed.bytes().first(packed.size() - 1), small));
  EXPECT_FALSE(compressor.decompress(random_bytes(100), small));
}

TEST(Compressor, DamageIsAnErrorAndDoesNotStick) {
  Compressor compressor;
  const std::vector<std::uint8_t> raw = text_bytes(10000);
  const base::Buffer packed = compressor.compress(raw, 1);
  std::vector<std::uint8_t> back(raw.size());
  for (std::size_t i = 0; i < packed.size(); ++i) {
    std::vector<std::uint8_t> damaged(packed.bytes().begin(), packed.bytes().end());
    damaged[i] ^= 0x55;
    (void)compressor.decompress(damaged,
                                back);  // must not crash; damage in literals cannot be seen here
  }
  ASSERT_TRUE(compressor.decompress(packed.bytes(), back));
  EXPECT_EQ(back, raw);
}

TEST(CompressionGauge, StopsOnIncompressibleDataAndProbes) {
  CompressionGauge gauge;
  EXPECT_TRUE(gauge.worth_trying());
  for (int i = 0; i < 10; ++i) gauge.record(1000, 1000, 1e-6);
  unsigned tries = 0;
  for (unsigned i = 0; i < 4 * CompressionGauge::kProbeEvery; ++i) tries += gauge.worth_trying();
  EXPECT_EQ(tries, 4u);
}

TEST(CompressionGauge, ComesBackWhenDataBecomesCompressible) {
  CompressionGauge gauge;
  for (int i = 0; i < 10; ++i) gauge.record(1000, 1000, 1e-6);
  for (int i = 0; i < 10; ++i) gauge.record(1000, 250, 1e-6);
  EXPECT_TRUE(gauge.worth_trying());
}

TEST(CompressionGauge, FastLinksAreNotHeldUp) {
  CompressionGauge gauge;
  for (int i = 0; i < 10; ++i) gauge.record(500'000, 125'000, 1e-3);  // 500 MB/s, 4x
  gauge.set_link_speed(12.5e6);
  EXPECT_TRUE(gauge.worth_trying());
  gauge.set_link_speed(1.5e9);
  EXPECT_FALSE(gauge.worth_trying());
}

}  // namespace
}  // namespace volferry::wire
