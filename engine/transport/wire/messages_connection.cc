// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

namespace {

template <std::size_t N>
void get_array(base::ByteReader& in, std::array<std::uint8_t, N>& out) {
  const base::Bytes bytes = in.raw(N);
  if (bytes.size() == N) std::copy(bytes.begin(), bytes.end(), out.begin());
}

template <typename Message>
void put_version(base::ByteWriter& out, const Message& message) {
  out.u32(kMagic);
  out.u16(message.major);
  out.u16(message.minor);
}

// The one part that every major version has in common, so it is judged before anything behind it is
// looked at.
template <typename Message>
Status get_version(base::ByteReader& in, Message& message) {
  const std::uint32_t magic = in.u32();
  message.major = in.u16();
  message.minor = in.u16();
  if (!in.ok() || magic != kMagic) {
    return fail_with(Code::kProtocol, "the peer does not speak volferry's protocol");
  }
  if (message.major != kVersionMajor) {
    return fail_with(Code::kProtocol, fmt::format("version {}.{} here, {}.{} there", kVersionMajor,
                                                  kVersionMinor, message.major, message.minor));
  }
  return {};
}

// A later minor version may have added fields at the end.
template <typename Message>
Status finish_versioned(base::ByteReader& in, const Message& message, std::string_view what) {
  if (message.minor > kVersionMinor && in.ok()) return {};
  return in.finish(what);
}

}  // namespace

std::vector<std::uint8_t> encode(const Hello& message) {
  base::ByteWriter out;
  put_version(out, message);
  out.u64(message.features);
  out.u32(message.stream);
  out.raw(message.session_id);
  out.raw(message.join_token);
  out.varint(message.list_credit);
  out.varint(message.data_credit);
  put_text(out, message.agent, kMaxText);
  put_bytes(out, message.identity);
  return out.take();
}

Status decode(base::Bytes head, Hello& message) {
  base::ByteReader in(head);
  VF_TRY(get_version(in, message));
  message.features = in.u64();
  message.stream = in.u32();
  get_array(in, message.session_id);
  get_array(in, message.join_token);
  message.list_credit = in.count(kMaxCredit);
  message.data_credit = in.count(kMaxCredit);
  message.agent = in.text(kMaxText);
  message.identity = get_bytes(in, kMaxIdentity);
  return finish_versioned(in, message, "Hello");
}

std::vector<std::uint8_t> encode(const HelloAck& message) {
  base::ByteWriter out;
  put_version(out, message);
  out.u64(message.features);
  out.raw(message.session_id);
  out.u32(message.max_streams);
  out.varint(message.list_credit);
  out.varint(message.data_credit);
  put_text(out, message.agent, kMaxText);
  put_bytes(out, message.identity);
  return out.take();
}

Status decode(base::Bytes head, HelloAck& message) {
  base::ByteReader in(head);
  VF_TRY(get_version(in, message));
  message.features = in.u64();
  get_array(in, message.session_id);
  message.max_streams = in.u32();
  message.list_credit = in.count(kMaxCredit);
  message.data_credit = in.count(kMaxCredit);
  message.agent = in.text(kMaxText);
  message.identity = get_bytes(in, kMaxIdentity);
  if (message.max_streams == 0) in.fail();
  return finish_versioned(in, message, "HelloAck");
}

std::vector<std::uint8_t> encode(const Refuse& message) {
  base::ByteWriter out;
  out.u32(message.code);
  put_text(out, message.text, kMaxText);
  return out.take();
}

Status decode(base::Bytes head, Refuse& message) {
  base::ByteReader in(head);
  message.code = in.u32();
  message.text = in.text(kMaxText);
  return in.finish("Refuse");
}

std::vector<std::uint8_t> encode(const Credit& message) {
  base::ByteWriter out;
  out.varint(message.list);
  out.varint(message.data);
  return out.take();
}

Status decode(base::Bytes head, Credit& message) {
  base::ByteReader in(head);
  message.list = in.count(kMaxCredit);
  message.data = in.count(kMaxCredit);
  return in.finish("Credit");
}

}  // namespace volferry::wire
