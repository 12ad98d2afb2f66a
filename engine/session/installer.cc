// SPDX-License-Identifier: Apache-2.0
#include "engine/session/installer.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "engine/session/convert.h"

namespace volferry::session {

namespace {

bool has_capability(unsigned capability) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return ::geteuid() == 0;
  return ((data[capability / 32].effective >> (capability % 32)) & 1) != 0;
}

// umask(2) can only be read by setting it, which other threads would see; the kernel also shows it in /proc.
std::uint16_t process_umask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:")) return static_cast<std::uint16_t>(std::stoul(line.substr(6), nullptr, 8));
  }
  return 022;
}

bool is_acl(const std::string& name) { return name == io::kAclAccess || name == io::kAclDefault; }

bool differs(const std::vector<wire::Xattr>& want, const io::XattrList& have, bool acls) {
  auto a = want.begin();
  auto b = have.begin();
  for (;;) {
    while (a != want.end() && is_acl(a->name) != acls) ++a;
    while (b != have.end() && is_acl(b->name) != acls) ++b;
    if (a == want.end() || b == have.end()) return a != want.end() || b != have.end();
    if (a->name != b->name || a->value != b->value) return true;
    ++a;
    ++b;
  }
}

}  // namespace

Installer::Installer(const VolumeOptions& options, Tally& tally)
    : options_(options),
      tally_(tally),
      can_chown_(has_capability(CAP_CHOWN)),
      can_override_(has_capability(CAP_DAC_OVERRIDE)),
      umask_(process_umask()) {}

std::uint16_t Installer::new_mode(const wire::EntryMeta& want) const {
  return options_.perms ? want.mode : static_cast<std::uint16_t>(want.mode & 0777 & ~umask_);
}

Result<Present> Installer::read(int dirfd, const std::string& name, const io::Metadata& meta) const {
  Present present{meta, {}};
  const auto target = name.empty() ? io::XattrTarget::of_fd(dirfd) : io::XattrTarget::of_name(dirfd, name);
  VF_ASSIGN(present.xattrs, io::read_xattrs(target, options_.xattrs, wire::kMaxXattrBytes));
  return present;
}

MetaDiff Installer::compare(const wire::EntryMeta& want, const Present& present) const {
  MetaDiff diff;
  diff.owner = options_.owner && want.uid != present.meta.uid;
  diff.group = options_.owner && want.gid != present.meta.gid;
  diff.mode = options_.perms && want.type != wire::EntryType::kSymlink && want.mode != present.meta.mode;
  diff.mtime = options_.times && mtime_of(want) != present.meta.mtime;
  diff.acl = options_.xattrs.acls && differs(want.xattrs, present.xattrs, true);
  diff.xattr = options_.xattrs.xattrs && differs(want.xattrs, present.xattrs, false);
  return diff;
}

Status Installer::apply_owner(int fd, int dirfd, const std::string& name, const wire::EntryMeta& want,
                              const io::Metadata& have) {
  const auto chown = [&](std::uint32_t uid, std::uint32_t gid) {
    return fd >= 0 ? io::set_owner_at(fd, "", uid, gid) : io::set_owner_at(dirfd, name, uid, gid);
  };
  Status done = chown(want.uid == have.uid ? static_cast<std::uint32_t>(-1) : want.uid,
                      want.gid == have.gid ? static_cast<std::uint32_t>(-1) : want.gid);
  const bool refused = !done && (done.error().os_errno == EPERM || done.error().os_errno == EINVAL);
  if (!refused || can_chown_) return done;
  // Without the privilege, a group that we belong to may still be set.
  if (want.uid != have.uid && want.gid != have.gid) (void)chown(static_cast<std::uint32_t>(-1), want.gid);
  tally_.owner_skipped.fetch_add(1);
  return {};
}

Status Installer::apply(int fd, int dirfd, const std::string& name, const wire::EntryMeta& want,
                        const Present& present) {
  const MetaDiff diff = compare(want, present);
  if (!diff.any()) return {};
  bool owner_changed = false;
  if (diff.owner || diff.group) {
    VF_TRY(apply_owner(fd, dirfd, name, want, present.meta));
    owner_changed = true;
  }
  if (want.type != wire::EntryType::kSymlink && options_.perms) {
    const bool special = owner_changed && ((want.mode | present.meta.mode) & 06000) != 0;
    if (diff.mode || special) {
      VF_TRY(fd >= 0 ? io::set_mode_at(fd, "", want.mode) : io::set_mode_at(dirfd, name, want.mode));
    }
  }
  if (diff.acl || diff.xattr || owner_changed) {
    io::XattrList have = present.xattrs;
    if (owner_changed) {  // chown(2) has dropped it
      std::erase_if(have, [](const io::Xattr& attr) { return attr.name == io::kCapability; });
    }
    const auto target = fd >= 0 ? io::XattrTarget::of_fd(fd) : io::XattrTarget::of_name(dirfd, name);
    VF_TRY(io::apply_xattrs(target, from_wire(want.xattrs), have));
  }
  if (options_.times) {
    VF_TRY(fd >= 0 ? io::set_mtime_at(fd, "", mtime_of(want)) : io::set_mtime_at(dirfd, name, mtime_of(want)));
  }
  return {};
}

}  // namespace volferry::session
