// SPDX-License-Identifier: Apache-2.0
// Puts metadata on what has been built at the destination, in the order that keeps it true: owner
// (which clears setuid and capabilities), mode, ACLs and attributes with security.capability last,
// times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/io/metadata.h"
#include "engine/io/xattrs.h"
#include "engine/session/tally.h"
#include "engine/session/volume_options.h"
#include "engine/transport/wire/messages.h"

namespace volferry::session {

// What differs between an entry as wanted and as it is.
struct MetaDiff {
  bool owner = false;
  bool group = false;
  bool mode = false;
  bool mtime = false;
  bool acl = false;
  bool xattr = false;
  bool any() const { return owner || group || mode || mtime || acl || xattr; }
};

// What stands at the destination now, or what a newly made item starts with.
struct Present {
  io::Metadata meta;
  io::XattrList xattrs;
  bool fixed = false;  // its attributes are left as they are
};

// Whether this process may give files capabilities (capabilities(7), CAP_SETFCAP).
bool may_set_capabilities();

class Installer {
 public:
  Installer(const VolumeOptions& options, Tally& tally);

  // Reads what stands there now.
  Result<Present> read(int dirfd, const std::string& name, const io::Metadata& meta) const;
  // Under the options: what is not carried never differs.
  MetaDiff compare(const wire::EntryMeta& want, const Present& present) const;
  // Applies what differs. `fd` is the open item, or -1: then `dirfd` and `name` name it.
  Status apply(int fd, int dirfd, const std::string& name, const wire::EntryMeta& want,
               const Present& present);
  // Counts the item where its owner is wrong and stays so for lack of privilege.
  void count_owner(const wire::EntryMeta& want, const io::Metadata& have);
  // Whether mode and times of such an item may be set; see chmod(2).
  bool may_change(const io::Metadata& meta) const;
  // Whether the attributes of the volume's root stay: as asked for, or since it belongs to somebody
  // else, such as one that a container runtime has given to the process's group. The content is
  // ours all the same.
  bool keeps_root(const io::Metadata& meta) const {
    return options_.keep_root || !may_change(meta);
  }
  bool can_chown() const { return can_chown_; }
  bool can_override() const { return can_override_; }
  std::uint16_t new_mode(
      const wire::EntryMeta& want) const;  // of a new item, without --no-perms: as wanted

 private:
  bool can_set_group(std::uint32_t gid) const;
  // Without the right owner, setuid and setgid would give its rights to somebody else: they are
  // left out.
  std::uint16_t mode_for(const wire::EntryMeta& want, const io::Metadata& have) const;
  Status apply_owner(int fd, int dirfd, const std::string& name, const wire::EntryMeta& want,
                     const io::Metadata& have);

  const VolumeOptions& options_;
  Tally& tally_;
  bool can_chown_ = false;
  std::vector<std::uint32_t> groups_;  // that a file may be given to without privilege
  bool can_override_ = false;
  bool can_own_ = false;              // CAP_FOWNER
  bool spares_capabilities_ = false;  // security.capability is left as it is
  std::uint16_t umask_ = 022;
};

}  // namespace volferry::session
