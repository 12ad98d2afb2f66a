// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/base/check.h"
#include "engine/transport/wire/messages.h"

namespace volferry::fuzz {

// Whatever a decoder accepts must come back equal from encode and decode. An encoder may shorten
// it, never lengthen it.
template <typename Message>
void check_codec(base::Bytes input) {
  Message first;
  if (!wire::decode(input, first)) return;
  const std::vector<std::uint8_t> again = wire::encode(first);
  VF_CHECK(again.size() <= input.size(), "the encoder is longer than what it came from");
  Message second;
  VF_CHECK(wire::decode(again, second).has_value(), "what was encoded is refused");
  VF_CHECK(first == second, "decode, encode, decode do not agree");
}

// The first byte picks the message of a group, the rest is its head.
template <typename... Messages>
int check_one_of(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const base::Bytes rest = base::Bytes(data, size).subspan(1);
  std::size_t index = data[0] % sizeof...(Messages);
  ((index-- == 0 ? check_codec<Messages>(rest) : void()), ...);
  return 0;
}

}  // namespace volferry::fuzz
