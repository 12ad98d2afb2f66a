// SPDX-License-Identifier: Apache-2.0
#include "engine/session/body_coder.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/session/support.h"

#include "engine/base/bytes.h"

namespace volferry::session {
namespace {

base::Buffer buffer_of(const std::string& text) {
  return base::Buffer::copy_of(base::as_bytes(text));
}

std::string log_text(std::size_t size) {
  std::string text;
  while (text.size() < size) text += "2026-01-01 line " + std::to_string(text.size() % 97) + "\n";
  text.resize(size);
  return text;
}

TEST(BodyCoder, RoundTripsFromManyThreads) {
  BodyCoder coder(CompressChoice::kZstd, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&coder, t] {
      for (std::size_t i = 0; i < 20; ++i) {
        const std::string text = log_text(1000 * (i + 1) + static_cast<std::size_t>(t));
        base::Buffer body = buffer_of(text);
        ASSERT_TRUE(coder.compress(body));
        EXPECT_LT(body.size(), text.size());
        const auto raw = coder.decompress(body, static_cast<std::uint32_t>(text.size()));
        ASSERT_TRUE(raw);
        EXPECT_EQ(base::as_text(raw->bytes()), text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(BodyCoder, OffLeavesBodiesAlone) {
  BodyCoder coder(CompressChoice::kOff, 0);
  const std::string text = log_text(100'000);
  base::Buffer body = buffer_of(text);
  EXPECT_FALSE(coder.compress(body));
  EXPECT_EQ(base::as_text(body.bytes()), text);
}

TEST(BodyCoder, WhatDoesNotShrinkStaysAsItIs) {
  BodyCoder coder(CompressChoice::kZstd, 1);
  const std::string random = testing::noise(100'000, 1);
  base::Buffer body = buffer_of(random);
  EXPECT_FALSE(coder.compress(body));
  EXPECT_EQ(base::as_text(body.bytes()), random);
  base::Buffer tiny = buffer_of("aaaaaaaaaaaaaaaaaaaaaaaa");
  EXPECT_FALSE(coder.compress(tiny));
}

TEST(BodyCoder, AutoGivesUpOnNoise) {
  BodyCoder coder(CompressChoice::kAuto, 0);
  base::Buffer noise = buffer_of(testing::noise(100'000, 1));
  for (int i = 0; i < 10; ++i) (void)coder.compress(noise);
  // Text comes along, and is not even tried before the next probe.
  int compressed = 0;
  for (int i = 0; i < 3; ++i) {
    base::Buffer text = buffer_of(log_text(100'000));
    compressed += coder.compress(text) ? 1 : 0;
  }
  EXPECT_LT(compressed, 3);
}

bool takes_text(BodyCoder& coder) {
  base::Buffer text = buffer_of(log_text(100'000));
  return coder.compress(text);
}

TEST(BodyCoder, AutoCompressesForASlowLinkOnly) {
  BodyCoder coder(CompressChoice::kAuto, 0);
  EXPECT_TRUE(takes_text(coder));
  transport::ChannelStats stats;
  stats.written = 100u << 20;
  stats.writing = std::chrono::milliseconds(20);
  coder.observe_link(stats);
  EXPECT_FALSE(takes_text(coder));
  stats.written += 1u << 20;
  stats.writing += std::chrono::milliseconds(1000);
  coder.observe_link(stats);
  EXPECT_TRUE(takes_text(coder));
}

// What is held up before it is written does not make the link a slow one.
TEST(BodyCoder, ALinkIsJudgedByTheTimeItTook) {
  BodyCoder coder(CompressChoice::kAuto, 0);
  EXPECT_TRUE(takes_text(coder));
  transport::ChannelStats stats;
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stats.written += 8u << 20;
    stats.writing += std::chrono::milliseconds(4);
    coder.observe_link(stats);
    EXPECT_FALSE(takes_text(coder)) << i;
  }
}

TEST(BodyCoder, WrongLengthsAndRubbishAreErrors) {
  BodyCoder coder(CompressChoice::kZstd, 1);
  base::Buffer body = buffer_of(log_text(5000));
  ASSERT_TRUE(coder.compress(body));
  EXPECT_EQ(coder.decompress(body, 4999).error().code, Code::kProtocol);
  EXPECT_EQ(coder.decompress(body, 5001).error().code, Code::kProtocol);
  EXPECT_EQ(coder.decompress(buffer_of("rubbish"), 10).error().code, Code::kProtocol);
  // The contexts are good for further use.
  EXPECT_TRUE(coder.decompress(body, 5000));
}

}  // namespace
}  // namespace volferry::session
