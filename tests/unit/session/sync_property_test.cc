// SPDX-License-Identifier: Apache-2.0
// The property that everything else serves: whatever stood at the destination, after a sync it
// equals the source, by every way there and under every option that says how. The seed is in each
// test's name; a failure prints every difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "tests/unit/session/random_tree.h"
#include "tests/unit/session/support.h"

namespace volferry::session {
namespace {

using testing::differences;
using ::testing::IsEmpty;
using testing::LoopbackServer;
using testing::quick_options;
using testing::RandomTree;

using testing::TempDir;
using testing::text_of;

enum class Way : std::uint8_t { kLocal, kPush, kPull };

struct Variant {
  const char* name;
  void (*set)(SyncOptions&);
};
const Variant kVariants[] = {
    {"Default", [](SyncOptions&) {}},
    {"Inplace", [](SyncOptions& o) { o.inplace = true; }},
    {"Checksum", [](SyncOptions& o) { o.checksum = true; }},
    {"Sha256", [](SyncOptions& o) { o.hash = HashChoice::kSha256; }},
    {"Zstd",
     [](SyncOptions& o) {
       o.compress = CompressChoice::kZstd;
       o.compress_level = 3;
     }},
    {"Streams", [](SyncOptions& o) { o.streams = 3; }},
    {"Uring", [](SyncOptions& o) { o.io = IoChoice::kAuto; }},
    {"DurableDirect",
     [](SyncOptions& o) {
       o.durable = true;
       o.direct = DirectChoice::kOn;
       o.io = IoChoice::kAuto;
     }},
    {"InplaceChecksum",
     [](SyncOptions& o) {
       o.inplace = true;
       o.checksum = true;
     }},
};

struct Case {
  Way way;
  const Variant* variant;
  std::uint64_t seed;
};
void PrintTo(const Case& value, std::ostream* out) { *out << "seed " << value.seed; }

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const char* const ways[] = {"Local", "Push", "Pull"};
  return std::string(ways[static_cast<int>(info.param.way)]) + info.param.variant->name +
         std::to_string(info.param.seed);
}

// Three seeds for each way and variant.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  std::uint64_t seed = 1;
  for (const Way way : {Way::kLocal, Way::kPush, Way::kPull}) {
    for (const Variant& variant : kVariants) {
      for (int i = 0; i < 3; ++i) cases.push_back({way, &variant, seed++});
    }
  }
  return cases;
}

class SyncProperty : public ::testing::TestWithParam<Case> {
 protected:
  Summary run(const SyncOptions& options) {
    const std::string source = dir_.at("source");
    const std::string destination = dir_.at("destination");
    if (GetParam().way == Way::kLocal) {
      return testing::sync(LocalEndpoint{source}, LocalEndpoint{destination}, options);
    }
    const LoopbackServer server(dir_.path(), 3);
    if (GetParam().way == Way::kPush) {
      return testing::sync(LocalEndpoint{source}, server.endpoint("destination"), options);
    }
    return testing::sync(server.endpoint("source"), LocalEndpoint{destination}, options);
  }

  TempDir dir_;
};

TEST_P(SyncProperty, DestinationEqualsSource) {
  const Case& param = GetParam();
  SyncOptions options = quick_options();
  options.delete_extra = true;
  param.variant->set(options);
  const std::string source = dir_.make("source");
  const std::string destination = dir_.make("destination");
  RandomTree tree(source, param.seed, false);
  tree.fill();
  tree.dress();

  // The first sync finds nothing there.
  const Summary first = run(options);
  ASSERT_EQ(first.exit_code(), 0) << text_of(first);
  ASSERT_THAT(differences(source, destination), IsEmpty());

  // Both ends move on.
  RandomTree(source, param.seed + 1000, options.checksum).edit(10);
  RandomTree(destination, param.seed + 2000, options.checksum).edit(10);
  if (param.seed % 2 == 0) RandomTree(source, param.seed + 3000, false).dress();
  // Where zeros meet zeros, the destination keeps its own allocation.
  const testing::TreeRules content{.holes = false};
  const Summary second = run(options);
  ASSERT_EQ(second.exit_code(), 0) << text_of(second);
  ASSERT_THAT(differences(source, destination, content), IsEmpty());

  const Summary third = run(options);
  EXPECT_EQ(third.exit_code(), 0) << text_of(third);
  EXPECT_EQ(third.files_transferred, 0u);
  EXPECT_EQ(third.files_deleted, 0u);
  EXPECT_EQ(third.literal_bytes, 0u);
  EXPECT_THAT(differences(source, destination, content), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SyncProperty, ::testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace volferry::session
