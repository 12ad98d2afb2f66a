// SPDX-License-Identifier: Apache-2.0
#include "engine/session/temp_name.h"

#include <cctype>

#include "engine/base/bytes.h"
#include "engine/delta/strong_hash.h"

namespace volferry::session {

namespace {
constexpr std::string_view kPrefix = ".volferry-";
constexpr std::string_view kSuffix = ".tmp";
}  // namespace

std::string temp_name(std::string_view name) {
  // A fixed key: the name must come out the same in every run.
  static constexpr std::uint8_t kKey[delta::StrongHash::kSecretBytes] = {
      0x76, 0x6f, 0x6c, 0x66, 0x65, 0x72, 0x72, 0x79,
      0x2d, 0x74, 0x65, 0x6d, 0x70, 0x9b, 0x3c, 0xe1};
  static const auto hash = delta::StrongHash::create(delta::HashKind::kXxh3, kKey);
  const delta::Digest digest = hash->hash_range(base::as_bytes(name), false).digest;
  return std::string(kPrefix) + base::to_hex(digest.view()) + std::string(kSuffix);
}

bool is_temp_name(std::string_view name) {
  if (name.size() != kPrefix.size() + 32 + kSuffix.size()) return false;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  for (const char c : name.substr(kPrefix.size(), 32)) {
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return false;
  }
  return true;
}

}  // namespace volferry::session
