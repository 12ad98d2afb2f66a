// SPDX-License-Identifier: Apache-2.0
// apply(old, delta(signature(old), new)) == new, for seeded edits, block sizes, splits into ranges,
// and in place.
#include <gtest/gtest.h>

#include "tests/unit/delta/rebuild.h"

#include "engine/delta/rolling.h"

namespace volferry::delta {
namespace {

using testing::Content;
using testing::equal;
using testing::Job;
using testing::random_content;
using testing::rebuild;
using testing::Rebuilt;

class Editor {
 public:
  explicit Editor(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  std::uint64_t seed() { return random_(); }

  // Random bytes, text with few different letters, a short period, or zeros.
  Content piece(std::size_t size) {
    Content content = random_content(size, seed());
    switch (below(4)) {
      case 0:
        return content;
      case 1:
        for (std::uint8_t& byte : content) byte = static_cast<std::uint8_t>('a' + byte % 3);
        return content;
      case 2:
        for (std::size_t i = 700; i < size; ++i) content[i] = content[i - 700];
        return content;
      default:
        return Content(size, 0);
    }
  }

  Content file(std::size_t size) {
    Content content;
    while (content.size() < size) {
      const Content more = piece(1 + below(std::min<std::size_t>(size - content.size(), 60000)));
      content.insert(content.end(), more.begin(), more.end());
    }
    return content;
  }

  void edit(Content& content) {
    const std::size_t at = below(content.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(content.size() - at, 20000) + 1);
    const auto begin = content.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    const Content cut(begin, end);
    switch (below(7)) {
      case 0:
        insert(content, at, piece(below(5000)));
        return;
      case 1:
        content.erase(begin, end);
        return;
      case 2:
        content.erase(begin, end);
        insert(content, below(content.size() + 1), cut);
        return;
      case 3:
        insert(content, below(content.size() + 1), cut);
        return;
      case 4: {
        const Content fresh = piece(length);
        std::copy(fresh.begin(), fresh.end(), begin);
        return;
      }
      case 5:
        insert(content, content.size(), piece(below(9000)));
        return;
      default:
        content.resize(content.size() - below(std::min<std::size_t>(content.size(), 9000) + 1));
    }
  }

 private:
  static void insert(Content& content, std::size_t at, const Content& more) {
    content.insert(content.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  }
  std::mt19937_64 random_;
};

class RollingProperty : public ::testing::TestWithParam<bool> {};

TEST_P(RollingProperty, EditedFilesAreRebuilt) {
  constexpr std::uint32_t kBlocks[] = {512, 700, 1024, 4096, 65536};
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    Editor editor(seed);
    const Content basis = editor.file(editor.below(300000));
    Content source = basis;
    for (std::size_t i = editor.below(8); i > 0; --i) editor.edit(source);
    const Job job{.block_bytes = kBlocks[seed % 5],
                  .ordered = GetParam(),
                  .range_bytes = seed % 3 == 0 ? kRangeBytes : 1 + editor.below(70000)};
    const Rebuilt result = rebuild(basis, source, job);
    ASSERT_EQ(result.fault, "") << "seed " << seed;
    ASSERT_TRUE(equal(result.content, source)) << "seed " << seed;
  }
}

TEST_P(RollingProperty, SizesAroundEveryBoundary) {
  constexpr std::size_t kMiB = 1 << 20;
  const std::size_t sizes[] = {0,        1,    511,      512,          513,         1023,  1024,
                               1025,     4095, 4096,     4097,         65535,       65536, 65537,
                               kMiB - 1, kMiB, kMiB + 1, 2 * kMiB - 1, 2 * kMiB + 1};
  const Content random = random_content(2 * kMiB + 2, 1);
  for (const std::size_t old_size : sizes) {
    const Content basis(random.begin(), random.begin() + static_cast<std::ptrdiff_t>(old_size));
    for (const std::size_t new_size : sizes) {
      for (const std::size_t shift : {0, 1}) {
        const Content source(random.begin() + static_cast<std::ptrdiff_t>(shift),
                             random.begin() + static_cast<std::ptrdiff_t>(new_size + shift));
        const Rebuilt result = rebuild(basis, source, {.ordered = GetParam()});
        ASSERT_EQ(result.fault, "") << old_size << " to " << new_size;
        ASSERT_TRUE(equal(result.content, source)) << old_size << " to " << new_size;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Order, RollingProperty, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "in_place" : "beside"; });

// Random content in which little changed costs little: about the changed bytes and one block an
// edit.
TEST(RollingProperty, FindsNearlyAllThatIsEqual) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Editor editor(seed);
    const Content basis = random_content(2000000, seed);
    Content source = basis;
    std::size_t inserted = 0;
    for (int i = 0; i < 10; ++i) {
      const Content more = random_content(editor.below(3000), editor.seed());
      const std::size_t at = editor.below(source.size());
      source.insert(source.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
      inserted += more.size();
    }
    const Rebuilt result = rebuild(basis, source);
    ASSERT_TRUE(equal(result.content, source));
    // Each insertion breaks one block; the basis ends with a part of one.
    EXPECT_LE(result.literal, inserted + 10 * 1024 + 1024) << "seed " << seed;
  }
}

}  // namespace
}  // namespace volferry::delta
