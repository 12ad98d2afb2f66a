// SPDX-License-Identifier: Apache-2.0
#include "engine/session/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "engine/base/unique_fd.h"

namespace volferry::session {

namespace {

// Rights that later ABIs brought; the header of an older system lacks their names.
constexpr std::uint64_t kRefer = 1ull << 13;     // ABI 2
constexpr std::uint64_t kTruncate = 1ull << 14;  // ABI 3

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

Status allow(int ruleset, const std::string& path, std::uint64_t access) {
  const base::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return fail_sys("open " + path);
  struct landlock_path_beneath_attr rule = {};
  rule.allowed_access = access;
  rule.parent_fd = fd.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return fail_sys("landlock_add_rule " + path);
  }
  return {};
}

}  // namespace

Result<bool> confine_to(const std::string& root, bool writable,
                        const std::vector<std::string>& readable) {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 2) return false;  // ABI 1 forbids all links and renames between directories
  std::uint64_t write = kWrite | kRefer;
  if (abi >= 3) write |= kTruncate;
  struct landlock_ruleset_attr attr = {};
  attr.handled_access_fs = kRead | write | LANDLOCK_ACCESS_FS_EXECUTE;
  const base::UniqueFd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0)));
  if (!ruleset) return fail_sys("landlock_create_ruleset");
  const base::UniqueFd probe(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::uint64_t file_only =
      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | (abi >= 3 ? kTruncate : 0);
  std::uint64_t access = writable ? kRead | write : kRead;
  if (!probe) access &= file_only;
  // A root that is not there yet will be made in its directory; a file is replaced through it.
  const bool missing = ::access(root.c_str(), F_OK) != 0;
  if (!missing) VF_TRY(allow(ruleset.get(), root, access));
  if (!probe) {
    const std::size_t slash = root.rfind('/');
    const std::string parent =
        slash == std::string::npos ? "." : (slash == 0 ? "/" : root.substr(0, slash));
    VF_TRY(allow(ruleset.get(), parent, writable ? kRead | write : kRead));
  }
  VF_TRY(allow(ruleset.get(), "/proc", kRead));
  for (const std::string& path : readable) {
    if (::access(path.c_str(), F_OK) == 0) VF_TRY(allow(ruleset.get(), path, kRead));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_sys("PR_SET_NO_NEW_PRIVS");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return fail_sys("landlock_restrict_self");
  return true;
}

}  // namespace volferry::session
