// SPDX-License-Identifier: Apache-2.0
#include "engine/io/internal/request.h"

#include <fmt/format.h>

#include "engine/io/file.h"

namespace volferry::io::internal {

std::string_view op_name(IoOp op) {
  switch (op) {
    case IoOp::kRead:
      return "pread";
    case IoOp::kWrite:
      return "pwrite";
    case IoOp::kSync:
      return "fdatasync";
  }
  return "?";
}

Error request_error(const IoRequest& request, int os_errno) {
  const auto name = op_name(request.op);
  if (request.op == IoOp::kSync) {
    return Error{Code::kSystem, os_errno, fmt::format("{} fd {}", name, request.fd)};
  }
  return Error{Code::kSystem, os_errno,
               fmt::format("{} fd {} @{}+{}", name, request.fd, request.offset, request.length)};
}

bool is_end_of_file(int fd, std::uint64_t offset) {
  const auto size = data_size(fd);
  return size.has_value() && offset >= *size;
}

}  // namespace volferry::io::internal
