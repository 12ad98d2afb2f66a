// SPDX-License-Identifier: Apache-2.0
#include "engine/session/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

namespace volferry::session {

Status place(int dirfd, const std::string& temp, const std::string& name, const std::string& path,
             Remover& remover, bool filtered) {
  if (::renameat(dirfd, temp.c_str(), dirfd, name.c_str()) == 0) return {};
  const int refused = errno;
  if (refused != EISDIR && refused != ENOTDIR && refused != ENOTEMPTY && refused != EEXIST) {
    return fail_sys("rename to " + name, refused);
  }
  VF_ASSIGN(const io::Metadata old, io::stat_at(dirfd, name));
  if (!filtered && ::renameat2(dirfd, temp.c_str(), dirfd, name.c_str(), RENAME_EXCHANGE) == 0) {
    return remover.remove(dirfd, temp, path, old, Remover::Report::kSilent);
  }
  // Excluded items, or a file system without RENAME_EXCHANGE.
  VF_TRY(remover.remove(dirfd, name, path, old, Remover::Report::kSilent));
  if (::renameat(dirfd, temp.c_str(), dirfd, name.c_str()) != 0)
    return fail_sys("rename to " + name);
  return {};
}

}  // namespace volferry::session
