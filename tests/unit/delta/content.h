// SPDX-License-Identifier: Apache-2.0
// Seeded contents and helpers shared by the tests of engine/delta.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "engine/delta/strong_hash.h"

namespace volferry::delta::testing {

using Content = std::vector<std::uint8_t>;

inline Content random_content(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Content content(size);
  for (std::uint8_t& byte : content) byte = static_cast<std::uint8_t>(random() >> 56);
  return content;
}

inline StrongHash make_hash(HashKind kind = HashKind::kXxh3, std::uint64_t seed = 1) {
  return *StrongHash::create(kind, random_content(StrongHash::kSecretBytes, seed));
}

// Two readable pages between pages whose access is a fault, so that a read past either edge kills
// the test.
class GuardedPages {
 public:
  GuardedPages() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* const all = ::mmap(nullptr, 4 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) std::abort();
    base_ = static_cast<std::uint8_t*>(all);
    if (::mprotect(begin(), size(), PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~GuardedPages() { ::munmap(base_, 4 * page_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  std::uint8_t* begin() const { return base_ + page_; }
  std::size_t size() const { return 2 * page_; }
  // The last `length` bytes, right before the guard.
  base::MutBytes tail(std::size_t length) const { return {begin() + size() - length, length}; }
  // The first ones, right behind it.
  base::MutBytes head(std::size_t length) const { return {begin(), length}; }
  // `content`, copied to the end.
  base::Bytes place(base::Bytes content) const {
    const base::MutBytes room = tail(content.size());
    if (!content.empty()) std::memcpy(room.data(), content.data(), content.size());
    return room;
  }

 private:
  std::size_t page_;
  std::uint8_t* base_;
};

}  // namespace volferry::delta::testing
