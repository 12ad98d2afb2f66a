// SPDX-License-Identifier: Apache-2.0
#include "engine/io/xattrs.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace volferry::io {

namespace {

// listxattrat(2) of Linux 6.13, the same number on every architecture but alpha; not in the C
// library yet. Looking a name up over /proc/self/fd takes over three times as long, and a walk
// lists the attributes of each file.
constexpr long kSysListxattrat = 465;

ssize_t list_names(const XattrTarget& target, char* out, std::size_t room) {
  if (target.name().empty()) return ::flistxattr(target.fd(), out, room);
  // Remembered for the process: a kernel or profile that refuses the call once always does.
  static std::atomic<bool> refused{false};
  if (!refused.load(std::memory_order_relaxed)) {
    const long length = ::syscall(kSysListxattrat, target.fd(), target.name().c_str(),
                                  AT_SYMLINK_NOFOLLOW, out, room);
    if (length >= 0 || (errno != ENOSYS && errno != EPERM)) return length;
    refused.store(true, std::memory_order_relaxed);
  }
  return ::llistxattr(target.path().c_str(), out, room);
}

ssize_t get_value(const XattrTarget& target, const char* name, char* out, std::size_t room) {
  return target.name().empty() ? ::fgetxattr(target.fd(), name, out, room)
                               : ::lgetxattr(target.path().c_str(), name, out, room);
}

int set_value(const XattrTarget& target, const Xattr& attr) {
  return target.name().empty()
             ? ::fsetxattr(target.fd(), attr.name.c_str(), attr.value.data(), attr.value.size(), 0)
             : ::lsetxattr(target.path().c_str(), attr.name.c_str(), attr.value.data(),
                           attr.value.size(), 0);
}

int remove_value(const XattrTarget& target, const std::string& name) {
  return target.name().empty() ? ::fremovexattr(target.fd(), name.c_str())
                               : ::lremovexattr(target.path().c_str(), name.c_str());
}

const Xattr* find(const XattrList& list, const std::string& name) {
  const auto it = std::lower_bound(list.begin(), list.end(), name,
                                   [](const Xattr& a, const std::string& n) { return a.name < n; });
  return it != list.end() && it->name == name ? &*it : nullptr;
}

}  // namespace

bool carried(const std::string& name, XattrPolicy policy) {
  if (name == kAclAccess || name == kAclDefault) return policy.acls;
  if (!policy.xattrs) return false;
  // XFS shows root its own form of the ACLs too: carried elsewhere it would mean nothing, and
  // removing it removes the ACL.
  if (name.starts_with("trusted.SGI_ACL_")) return false;
  return name.starts_with("user.") || name.starts_with("trusted.") || name == kCapability;
}

std::string XattrTarget::path() const {
  return "/proc/self/fd/" + std::to_string(fd_) + "/" + name_;
}

Result<XattrList> read_xattrs(const XattrTarget& target, XattrPolicy policy,
                              std::size_t max_bytes) {
  XattrList list;
  if (policy.none()) return list;
  char small[1024];
  std::vector<char> large;
  char* names = small;
  ssize_t length = list_names(target, small, sizeof(small));
  while (length < 0 && errno == ERANGE) {
    const ssize_t needed = list_names(target, nullptr, 0);
    if (needed < 0) return fail_sys("listxattr");
    large.resize(static_cast<std::size_t>(needed) + 1024);
    names = large.data();
    length = list_names(target, large.data(), large.size());
  }
  if (length < 0) {
    if (errno == EOPNOTSUPP) return list;
    return fail_sys("listxattr");
  }
  std::size_t total = 0;
  for (const char* name = names; name < names + length; name += std::strlen(name) + 1) {
    if (!carried(name, policy)) continue;
    Xattr attr{name, std::string(256, '\0')};
    ssize_t got = get_value(target, name, attr.value.data(), attr.value.size());
    if (got < 0 && errno == ERANGE) {
      attr.value.resize(65536);  // XATTR_SIZE_MAX
      got = get_value(target, name, attr.value.data(), attr.value.size());
    }
    if (got < 0) {
      if (errno == ENODATA) continue;  // removed meanwhile
      return fail_sys("getxattr " + attr.name);
    }
    attr.value.resize(static_cast<std::size_t>(got));
    total += attr.name.size() + attr.value.size();
    if (total > max_bytes) return fail_sys("getxattr", EOVERFLOW);
    list.push_back(std::move(attr));
  }
  std::sort(list.begin(), list.end(),
            [](const Xattr& a, const Xattr& b) { return a.name < b.name; });
  return list;
}

Status apply_xattrs(const XattrTarget& target, const XattrList& wanted, const XattrList& present) {
  for (const Xattr& attr : present) {
    if (find(wanted, attr.name) != nullptr) continue;
    if (remove_value(target, attr.name) != 0 && errno != ENODATA) {
      return fail_sys("removexattr " + attr.name);
    }
  }
  const Xattr* capability = nullptr;
  for (const Xattr& attr : wanted) {
    const Xattr* old = find(present, attr.name);
    if (old != nullptr && old->value == attr.value) continue;
    if (attr.name == kCapability) {
      capability = &attr;
      continue;
    }
    if (set_value(target, attr) != 0) return fail_sys("setxattr " + attr.name);
  }
  if (capability != nullptr && set_value(target, *capability) != 0) {
    return fail_sys(std::string("setxattr ") + kCapability);
  }
  return {};
}

}  // namespace volferry::io
