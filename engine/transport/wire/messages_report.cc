// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/internal/codec.h"

namespace volferry::wire {

std::vector<std::uint8_t> encode(const ItemReport& message) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(message.kind));
  put_text(out, message.path, kMaxPath);
  put_errno(out, message.os_errno);
  put_text(out, message.text, kMaxText);
  return out.take();
}

Status decode(base::Bytes head, ItemReport& message) {
  base::ByteReader in(head);
  message.kind = get_enum(in, ReportKind::kDifference);
  message.path = in.text(kMaxPath);
  message.os_errno = get_errno(in);
  message.text = in.text(kMaxText);
  return in.finish("ItemReport");
}

std::vector<std::uint8_t> encode(const ItemChange& message) {
  base::ByteWriter out;
  put_text(out, message.code, kMaxText);
  put_text(out, message.path, kMaxPath);
  put_text(out, message.link_target, kMaxPath);
  return out.take();
}

Status decode(base::Bytes head, ItemChange& message) {
  base::ByteReader in(head);
  message.code = in.text(kMaxText);
  message.path = in.text(kMaxPath);
  message.link_target = in.text(kMaxPath);
  return in.finish("ItemChange");
}

std::vector<std::uint8_t> encode(const Progress& message) {
  base::ByteWriter out;
  out.u8(message.phase);
  out.varint(message.files_total);
  out.varint(message.files_done);
  out.varint(message.bytes_total);
  out.varint(message.bytes_done);
  return out.take();
}

Status decode(base::Bytes head, Progress& message) {
  base::ByteReader in(head);
  message.phase = in.u8();
  message.files_total = in.varint();
  message.files_done = in.varint();
  message.bytes_total = in.varint();
  message.bytes_done = in.varint();
  return in.finish("Progress");
}

}  // namespace volferry::wire
