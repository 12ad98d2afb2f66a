// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: each file of the corpus folder as it is, then some thousand
// mutations of it from a fixed seed, so that every compiler and every ctest run fuzzes a little. A
// crash names the file and the mutation.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr int kMutations = 4000;
constexpr std::uint64_t kSeed = 20260101;

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::size_t below(std::mt19937_64& random, std::size_t bound) {
  return bound == 0 ? 0 : random() % bound;
}

void mutate_once(Input& input, std::mt19937_64& random) {
  static constexpr std::uint8_t kTelling[] = {0, 1, 0x7f, 0x80, 0xff, 0x0f, 0x10, 0x20};
  const std::size_t at = below(random, input.size());
  const auto position = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 6) {
    case 0:
      if (!input.empty()) input[at] ^= static_cast<std::uint8_t>(1u << (random() % 8));
      break;
    case 1:
      if (!input.empty()) input[at] = kTelling[random() % std::size(kTelling)];
      break;
    case 2:
      input.insert(position, static_cast<std::uint8_t>(random()));
      break;
    case 3:
      if (!input.empty()) input.erase(position);
      break;
    case 4:
      input.resize(at);
      break;
    default: {
      // A copied stretch: counts and their items drift apart.
      const std::size_t length = below(random, std::min<std::size_t>(input.size() - at, 32));
      const Input part(position, position + static_cast<std::ptrdiff_t>(length));
      const std::size_t to = below(random, input.size() + 1);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(to), part.begin(), part.end());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "no corpus in %s\n", argv[1]);
    return 1;
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    const Input original = read_file(path);
    // Said beforehand, since a crash says nothing.
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(original.data(), original.size());
    std::mt19937_64 random(kSeed);
    for (int i = 0; i < kMutations; ++i) {
      Input mutated = original;
      for (std::uint64_t n = random() % 4 + 1; n > 0; --n) mutate_once(mutated, random);
      LLVMFuzzerTestOneInput(mutated.data(), mutated.size());
    }
  }
  std::printf("%zu inputs, %d mutations each\n", files.size(), kMutations);
  return 0;
}
