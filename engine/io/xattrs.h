// SPDX-License-Identifier: Apache-2.0
// Extended attributes and POSIX ACLs (which the kernel keeps as the attributes
// system.posix_acl_access and _default). Carried are user.*, trusted.*, security.capability and the
// two ACLs; labels of a security module are local policy and stay as they are.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"

namespace volferry::io {

struct Xattr {
  std::string name;
  std::string value;
  bool operator==(const Xattr&) const = default;
};
using XattrList = std::vector<Xattr>;  // sorted by name

struct XattrPolicy {
  bool xattrs = true;
  bool acls = true;
  bool none() const { return !xattrs && !acls; }
};

inline constexpr char kAclAccess[] = "system.posix_acl_access";
inline constexpr char kAclDefault[] = "system.posix_acl_default";
inline constexpr char kCapability[] = "security.capability";

// True if an attribute of this name is carried under the policy.
bool carried(const std::string& name, XattrPolicy policy);

// The object an attribute call works on: an open file, or one component below a directory (never
// followed if a link; reached over /proc/self/fd, so that no path is resolved again).
class XattrTarget {
 public:
  static XattrTarget of_fd(int fd) { return XattrTarget(fd, {}); }
  static XattrTarget of_name(int dirfd, const std::string& name);
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }  // empty: use fd

 private:
  XattrTarget(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

// The carried attributes. A file system without attributes has none. Errors: E2BIG where the names
// exceed the kernel's 64 KiB (xattr(7)), EOVERFLOW past `max_bytes` of names and values.
Result<XattrList> read_xattrs(const XattrTarget& target, XattrPolicy policy, std::size_t max_bytes);

// Makes the carried attributes equal to `wanted`, given that `present` is there now: removes, then
// sets what differs, security.capability last. Stops at the first failure, naming the attribute.
Status apply_xattrs(const XattrTarget& target, const XattrList& wanted, const XattrList& present);

}  // namespace volferry::io
