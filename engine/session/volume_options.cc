// SPDX-License-Identifier: Apache-2.0
#include "engine/session/volume_options.h"

namespace volferry::session {

VolumeOptions volume_options(const wire::Start& start) {
  const auto has = [&](wire::StartFlag flag) { return (start.flags & flag) != 0; };
  VolumeOptions out;
  out.delete_extra = has(wire::kFlagDelete);
  out.dry_run = has(wire::kFlagDryRun);
  out.itemize = has(wire::kFlagItemize);
  out.checksum = has(wire::kFlagChecksum);
  out.one_file_system = has(wire::kFlagOneFileSystem);
  out.inplace = has(wire::kFlagInplace);
  out.owner = !has(wire::kFlagNoOwner);
  out.perms = !has(wire::kFlagNoPerms);
  out.times = !has(wire::kFlagNoTimes);
  out.hardlinks = !has(wire::kFlagNoHardlinks);
  out.devices = !has(wire::kFlagNoDevices);
  out.verify_only = has(wire::kFlagVerifyOnly);
  out.verify_after = has(wire::kFlagVerifyAfter);
  out.durable = has(wire::kFlagDurable);
  out.xattrs = {!has(wire::kFlagNoXattrs), !has(wire::kFlagNoAcls)};
  std::vector<FilterRule> rules;
  for (const wire::FilterRule& rule : start.filters) rules.push_back({rule.include, rule.pattern});
  out.filter = Filter(rules);
  return out;
}

std::uint64_t start_flags(const SyncOptions& options, bool verify_only) {
  std::uint64_t flags = 0;
  const auto set = [&](bool on, wire::StartFlag flag) {
    if (on) flags |= flag;
  };
  set(options.delete_extra, wire::kFlagDelete);
  set(options.dry_run, wire::kFlagDryRun);
  set(options.itemize, wire::kFlagItemize);
  set(options.checksum, wire::kFlagChecksum);
  set(options.one_file_system, wire::kFlagOneFileSystem);
  set(options.inplace, wire::kFlagInplace);
  set(!options.owner, wire::kFlagNoOwner);
  set(!options.perms, wire::kFlagNoPerms);
  set(!options.times, wire::kFlagNoTimes);
  set(!options.xattrs, wire::kFlagNoXattrs);
  set(!options.acls, wire::kFlagNoAcls);
  set(!options.hardlinks, wire::kFlagNoHardlinks);
  set(!options.devices, wire::kFlagNoDevices);
  set(verify_only, wire::kFlagVerifyOnly);
  set(options.verify && !options.dry_run && !verify_only, wire::kFlagVerifyAfter);
  set(options.durable, wire::kFlagDurable);
  set(true, wire::kFlagProgress);
  return flags;
}

}  // namespace volferry::session
