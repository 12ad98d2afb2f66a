// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/strong_hash.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <set>
#include <thread>

#include "tests/unit/delta/content.h"

#include "engine/delta/internal/xxh3.h"

namespace volferry::delta {
namespace {

using testing::Content;
using testing::make_hash;
using testing::random_content;

constexpr HashKind kKinds[] = {HashKind::kXxh3, HashKind::kSha256};

Content sha256(std::initializer_list<base::Bytes> parts) {
  Content all;
  for (const base::Bytes part : parts) all.insert(all.end(), part.begin(), part.end());
  Content digest(32);
  EVP_Digest(all.data(), all.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

TEST(StrongHash, RefusesSecretsOfTheWrongLength) {
  const Content secret = random_content(300, 1);
  const auto code = [&](HashKind kind, std::size_t size) {
    const auto hash = StrongHash::create(kind, {secret.data(), size});
    return hash ? Code::kInternal : hash.error().code;
  };
  EXPECT_EQ(code(HashKind::kXxh3, 135), Code::kProtocol);
  EXPECT_EQ(code(HashKind::kXxh3, 136), Code::kInternal);
  EXPECT_EQ(code(HashKind::kXxh3, 192), Code::kInternal);
  EXPECT_EQ(code(HashKind::kXxh3, 193), Code::kProtocol);
  EXPECT_EQ(code(HashKind::kSha256, 15), Code::kProtocol);
  EXPECT_EQ(code(HashKind::kSha256, 16), Code::kInternal);
  EXPECT_EQ(code(HashKind::kSha256, 193), Code::kProtocol);
  EXPECT_EQ(code(static_cast<HashKind>(7), 192), Code::kProtocol);
}

TEST(StrongHash, DependsOnEveryByteAndOnTheLength) {
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    Content content = random_content(9000, 2);
    const Digest digest = hash.hash_range(content, false).digest;
    EXPECT_EQ(digest.size, hash.digest_bytes());
    for (std::size_t at = 0; at < content.size(); at += 37) {
      content[at] ^= 1;
      ASSERT_NE(hash.hash_range(content, false).digest, digest) << at;
      content[at] ^= 1;
    }
    content.back() ^= 1;
    EXPECT_NE(hash.hash_range(content, false).digest, digest);
    content.back() ^= 1;
    EXPECT_NE(hash.hash_range({content.data(), content.size() - 1}, false).digest, digest);
    EXPECT_EQ(hash.hash_range(content, true).digest, digest);
  }
}

TEST(StrongHash, TellsSecretsApart) {
  const Content content = random_content(5000, 3);
  for (const HashKind kind : kKinds) {
    const StrongHash one = make_hash(kind, 1);
    const StrongHash two = make_hash(kind, 2);
    EXPECT_NE(one.hash64(content), two.hash64(content));
    EXPECT_NE(one.hash_range(content, false).digest, two.hash_range(content, false).digest);
    EXPECT_EQ(one.hash64(content), make_hash(kind, 1).hash64(content));
  }
}

TEST(StrongHash, GivesOneBlockHashABlock) {
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    for (const std::size_t size : {0UL, 1UL, 4095UL, 4096UL, 4097UL, 1048575UL, 1048576UL}) {
      const Content content = random_content(size, size);
      const RangeHash whole = hash.hash_range(content, true);
      ASSERT_EQ(whole.blocks.size(), (size + 4095) / 4096);
      EXPECT_TRUE(hash.hash_range(content, false).blocks.empty());
      for (std::size_t i = 0; i < whole.blocks.size(); ++i) {
        const std::size_t length = std::min<std::size_t>(4096, size - i * 4096);
        const RangeHash one = hash.hash_range({content.data() + i * 4096, length}, true);
        ASSERT_EQ(one.blocks.front(), whole.blocks[i]);
      }
    }
  }
}

TEST(StrongHash, KeepsBlocksRangesChainsAndFlatHashesApart) {
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    const Content content = random_content(4096, 4);
    const RangeHash range = hash.hash_range(content, true);
    const std::set<std::uint32_t> low = {
        range.blocks.front(), static_cast<std::uint32_t>(hash.hash64(content)),
        static_cast<std::uint32_t>(hash.hash64(range.digest.view()))};
    EXPECT_EQ(low.size(), 3U);
    EXPECT_NE(hash.combine({range.digest}), range.digest);
  }
}

TEST(StrongHash, TreatsZerosLikeAnyContent) {
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    const Content zeros(8192, 0);
    const RangeHash range = hash.hash_range(zeros, true);
    EXPECT_NE(range.digest, Digest{.size = range.digest.size});
    EXPECT_EQ(range.blocks[0], range.blocks[1]);
    EXPECT_NE(hash.hash_range({zeros.data(), 4096}, false).digest, range.digest);
  }
}

TEST(StrongHash, Sha256IsTheDocumentedTree) {
  const Content secret = random_content(40, 5);
  const StrongHash hash = *StrongHash::create(HashKind::kSha256, secret);
  const Content content = random_content(5000, 6);
  const auto key = [&](std::uint8_t domain) {
    Content bytes(secret);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(byte ^ (domain * 0x55));
    bytes.push_back(domain);
    return bytes;
  };
  const Content first = sha256({key(0), {content.data(), 4096}});
  const Content second = sha256({key(0), {content.data() + 4096, 904}});
  const Content root = sha256({key(1), first, second});
  const Digest digest = hash.hash_range(content, false).digest;
  EXPECT_TRUE(std::equal(root.begin(), root.end(), digest.view().begin(), digest.view().end()));
}

TEST(StrongHash, CombineDependsOnOrderAndCount) {
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    std::vector<Digest> digests;
    for (std::uint64_t i = 0; i < 9000; ++i) {
      digests.push_back(hash.hash_range(random_content(16, i), false).digest);
    }
    const Digest all = hash.combine(digests);
    EXPECT_EQ(all, hash.combine(digests));
    for (const std::size_t at : {0UL, 4095UL, 4096UL, 8998UL}) {
      std::swap(digests[at], digests[at + 1]);
      EXPECT_NE(hash.combine(digests), all);
      std::swap(digests[at], digests[at + 1]);
    }
    digests.pop_back();
    EXPECT_NE(hash.combine(digests), all);
    EXPECT_NE(hash.combine({}), hash.combine({digests[0]}));
    EXPECT_EQ(hash.combine({}).size, hash.digest_bytes());
  }
}

TEST(StrongHash, ReadsNothingPastTheEnd) {
  const testing::GuardedPages pages;
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    for (std::size_t length = 0; length <= 2 * 4096; length += length < 300 ? 1 : 113) {
      const Content content = random_content(length, length);
      const base::Bytes data = pages.place(content);
      ASSERT_EQ(hash.hash64(data), hash.hash64(content));
      ASSERT_EQ(hash.hash_range(data, true).digest, hash.hash_range(content, true).digest);
    }
  }
}

TEST(StrongHash, IsSharedBetweenThreads) {
  for (const HashKind kind : kKinds) {
    const StrongHash hash = make_hash(kind);
    const Content content = random_content(100000, 7);
    const Digest expected = hash.hash_range(content, true).digest;
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < 20; ++n) wrong[i] += hash.hash_range(content, true).digest != expected;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
  }
}

TEST(Xxh3Kernels, AllGiveEqualHashes) {
  const internal::Xxh3Kernels kernels = internal::xxh3_kernels();
  const Content secret = random_content(192, 8);
  ASSERT_TRUE(kernels.list[0].usable);
  for (const internal::Xxh3Kernel& kernel : kernels) {
    if (!kernel.usable) {
      std::printf("skipped: this CPU lacks %s\n", kernel.name);
      continue;
    }
    for (std::size_t size = 0; size < 9000; size += size < 600 ? 1 : 131) {
      const Content content = random_content(size, size);
      for (const std::size_t secret_size : {136UL, 150UL, 192UL}) {
        const auto expected =
            kernels.list[0].hash(content.data(), size, secret.data(), secret_size);
        const auto actual = kernel.hash(content.data(), size, secret.data(), secret_size);
        ASSERT_EQ(actual.low, expected.low) << kernel.name << " " << size;
        ASSERT_EQ(actual.high, expected.high) << kernel.name << " " << size;
      }
    }
  }
}

}  // namespace
}  // namespace volferry::delta
