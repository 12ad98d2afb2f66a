// SPDX-License-Identifier: Apache-2.0
#include "engine/session/installer.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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

// umask(2) can only be read by setting it, which other threads would see; the kernel also shows it
// in /proc.
std::uint16_t process_umask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:"))
      return static_cast<std::uint16_t>(std::stoul(line.substr(6), nullptr, 8));
  }
  return 022;
}

bool is_acl(const std::string& name) { return name == io::kAclAccess || name == io::kAclDefault; }

// Of the ACLs or of the other attributes; without those that are to stay as they are.
bool differs(const std::vector<wire::Xattr>& want, const io::XattrList& have, bool acls,
             bool spare_capabilities) {
  const auto counts = [&](const std::string& name) {
    return is_acl(name) == acls && !(spare_capabilities && name == io::kCapability);
  };
  auto a = want.begin();
  auto b = have.begin();
  for (;;) {
    while (a != want.end() && !counts(a->name)) ++a;
    while (b != have.end() && !counts(b->name)) ++b;
    if (a == want.end() || b == have.end()) return a != want.end() || b != have.end();
    if (a->name != b->name || a->value != b->value) return true;
    ++a;
    ++b;
  }
}

}  // namespace

bool may_set_capabilities() { return has_capability(CAP_SETFCAP); }

Installer::Installer(const VolumeOptions& options, Tally& tally)
    : options_(options),
      tally_(tally),
      can_chown_(has_capability(CAP_CHOWN)),
      can_override_(has_capability(CAP_DAC_OVERRIDE)),
      can_own_(has_capability(CAP_FOWNER)),
      spares_capabilities_(options.spare_capabilities && !may_set_capabilities()),
      umask_(process_umask()) {
  const int count = ::getgroups(0, nullptr);
  groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (count > 0) (void)::getgroups(count, groups_.data());
  groups_.push_back(::getegid());
}

bool Installer::may_change(const io::Metadata& meta) const {
  return can_own_ || meta.uid == ::geteuid();
}

bool Installer::can_set_group(std::uint32_t gid) const {
  return can_chown_ || std::ranges::find(groups_, gid) != groups_.end();
}

std::uint16_t Installer::new_mode(const wire::EntryMeta& want) const {
  return options_.perms ? want.mode : static_cast<std::uint16_t>(want.mode & 0777 & ~umask_);
}

Result<Present> Installer::read(int dirfd, const std::string& name,
                                const io::Metadata& meta) const {
  Present present{meta, {}};
  const auto target =
      name.empty() ? io::XattrTarget::of_fd(dirfd) : io::XattrTarget::of_name(dirfd, name);
  VF_ASSIGN(present.xattrs, io::read_xattrs(target, options_.xattrs, wire::kMaxXattrBytes));
  return present;
}

MetaDiff Installer::compare(const wire::EntryMeta& want, const Present& present) const {
  MetaDiff diff;
  if (present.fixed) return diff;
  diff.owner = options_.owner && can_chown_ && want.uid != present.meta.uid;
  diff.group = options_.owner && can_set_group(want.gid) && want.gid != present.meta.gid;
  diff.mode = options_.perms && want.type != wire::EntryType::kSymlink &&
              mode_for(want, present.meta) != present.meta.mode;
  diff.mtime = options_.times && mtime_of(want) != present.meta.mtime;
  diff.acl = options_.xattrs.acls && differs(want.xattrs, present.xattrs, true, false);
  diff.xattr =
      options_.xattrs.xattrs && differs(want.xattrs, present.xattrs, false, spares_capabilities_);
  return diff;
}

void Installer::count_owner(const wire::EntryMeta& want, const io::Metadata& have) {
  const bool wrong =
      options_.owner && !can_chown_ && (want.uid != have.uid || want.gid != have.gid);
  if (wrong) tally_.owner_skipped.fetch_add(1);
}

std::uint16_t Installer::mode_for(const wire::EntryMeta& want, const io::Metadata& have) const {
  std::uint16_t mode = want.mode;
  if (!options_.owner || can_chown_) return mode;
  if (want.uid != have.uid) mode &= static_cast<std::uint16_t>(~04000);
  if (want.gid != have.gid && want.type != wire::EntryType::kDirectory)
    mode &= static_cast<std::uint16_t>(~02000);
  return mode;
}

Status Installer::apply_owner(int fd, int dirfd, const std::string& name,
                              const wire::EntryMeta& want, const io::Metadata& have) {
  const auto chown = [&](std::uint32_t uid, std::uint32_t gid) {
    return fd >= 0 ? io::set_owner_at(fd, "", uid, gid) : io::set_owner_at(dirfd, name, uid, gid);
  };
  if (!can_chown_) {
    // A group that we belong to may be set without the privilege.
    (void)chown(static_cast<std::uint32_t>(-1), want.gid);
    return {};
  }
  return chown(want.uid == have.uid ? static_cast<std::uint32_t>(-1) : want.uid,
               want.gid == have.gid ? static_cast<std::uint32_t>(-1) : want.gid);
}

Status Installer::apply(int fd, int dirfd, const std::string& name, const wire::EntryMeta& want,
                        const Present& present) {
  const MetaDiff diff = compare(want, present);
  if (!diff.any()) return {};
  bool owner_changed = false;
  io::Metadata have = present.meta;
  if (diff.owner || diff.group) {
    VF_TRY(apply_owner(fd, dirfd, name, want, present.meta));
    owner_changed = true;
    if (!can_chown_) {  // perhaps the group could be set
      VF_ASSIGN(have, fd >= 0 ? io::stat_fd(fd) : io::stat_at(dirfd, name));
    }
  }
  if (want.type != wire::EntryType::kSymlink && options_.perms) {
    const std::uint16_t mode = mode_for(want, have);
    const bool special = owner_changed && ((mode | present.meta.mode) & 06000) != 0;
    if (diff.mode || special) {
      VF_TRY(fd >= 0 ? io::set_mode_at(fd, "", mode) : io::set_mode_at(dirfd, name, mode));
    }
  }
  if (diff.acl || diff.xattr || owner_changed) {
    io::XattrList there = present.xattrs;
    io::XattrList wanted = from_wire(want.xattrs);
    const auto is_capability = [](const io::Xattr& attr) { return attr.name == io::kCapability; };
    // chown(2) has dropped it
    if (owner_changed || spares_capabilities_) std::erase_if(there, is_capability);
    if (spares_capabilities_) std::erase_if(wanted, is_capability);
    const auto target =
        fd >= 0 ? io::XattrTarget::of_fd(fd) : io::XattrTarget::of_name(dirfd, name);
    VF_TRY(io::apply_xattrs(target, wanted, there));
  }
  if (options_.times) {
    VF_TRY(fd >= 0 ? io::set_mtime_at(fd, "", mtime_of(want))
                   : io::set_mtime_at(dirfd, name, mtime_of(want)));
  }
  return {};
}

}  // namespace volferry::session
