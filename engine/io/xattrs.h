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

// The object an attribute call works on: an open file, or one component below an open directory
// (never followed if a link).
class XattrTarget {
 public:
  static XattrTarget of_fd(int fd) { return XattrTarget(fd, {}); }
  static XattrTarget of_name(int dirfd, std::string name) { return {dirfd, std::move(name)}; }
  int fd() const { return fd_; }                     // the file, or the directory of `name`
  const std::string& name() const { return name_; }  // empty: the open file itself
  // For calls that take no descriptor: over /proc/self/fd, so that no path is resolved again.
  std::string path() const;

 private:
  XattrTarget(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  int fd_;
  std::string name_;
};

// The carried attributes. A file system without attributes has none. Errors: E2BIG where the names
// exceed the kernel's 64 KiB (xattr(7)), EOVERFLOW past `max_bytes` of names and values.
Result<XattrList> read_xattrs(const XattrTarget& target, XattrPolicy policy, std::size_t max_bytes);

// Makes the carried attributes equal to `wanted`, given that `present` is there now: removes, then
// sets what differs, security.capability last. Stops at the first failure, naming the attribute.
Status apply_xattrs(const XattrTarget& target, const XattrList& wanted, const XattrList& present);

}  // namespace volferry::io
