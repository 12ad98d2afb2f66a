// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/settings.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <regex>
#include <vector>

#include "cli/escape.h"
#include "cli/mover/identity.h"
#include "cli/mover/values.h"
#include "cli/option_sets.h"
#include "cli/units.h"

namespace volferry::cli::mover {

namespace {

constexpr std::string_view kTerminationLog = "VOLFERRY_TERMINATION_LOG";
constexpr std::size_t kMaxHost = 253;

// One row of the table: the variable, who reads it, and what to do with its text. Rows that do not
// concern the role are accepted and ignored, so that both Jobs may share a template.
struct Row {
  std::string_view name;  // after the prefix
  std::function<Status(std::string_view)> apply;
};

// A converter whose result is stored in `target`.
template <typename T, typename Parse>
std::function<Status(std::string_view)> into(T& target, Parse parse) {
  return [&target, parse](std::string_view text) -> Status {
    VF_ASSIGN(target, parse(text));
    return {};
  };
}

std::function<Status(std::string_view)> text_into(std::string& target, std::size_t max_bytes) {
  return [&target, max_bytes](std::string_view text) -> Status {
    if (!plain_text(text, max_bytes))
      return fail_with(
          Code::kUsage,
          fmt::format("expected at most {} bytes without control characters", max_bytes));
    target = text;
    return {};
  };
}

std::function<Status(std::string_view)> path_into(std::string& target) {
  return [&target](std::string_view text) -> Status {
    target = text;
    return {};
  };
}

Status set_address(std::string_view text, std::string& target) {
  std::string_view host = text;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool plain = plain_text(host, kMaxHost) && !host.empty() && host[0] != '-' &&
                     host.find_first_of(" []/@") == std::string_view::npos;
  if (!plain)
    return fail_with(Code::kUsage,
                     fmt::format("'{}' is not a host name or an address", escape_bytes(text)));
  target = host;
  return {};
}

Status set_metrics(std::string_view text, std::optional<ListenAddress>& target) {
  if (text == "off") {
    target.reset();
    return {};
  }
  VF_ASSIGN(target, parse_metrics_address(text));
  return {};
}

Status set_verify(std::string_view text, SyncOptions& options) {
  if (text != "none" && text != "full")
    return fail_with(Code::kUsage,
                     fmt::format("'{}' is not one of none, full", escape_bytes(text)));
  options.verify = text == "full";
  return {};
}

Result<std::uint16_t> parse_port(std::string_view text) {
  VF_ASSIGN(const unsigned port, parse_count(text, 1, 65535));
  return static_cast<std::uint16_t>(port);
}

Result<unsigned> parse_retries(std::string_view text) { return parse_count(text, 0, 1000); }

Result<std::chrono::milliseconds> parse_positive_seconds(std::string_view text) {
  VF_ASSIGN(const std::chrono::milliseconds time, parse_seconds_s(text));
  if (time.count() == 0) return fail_with(Code::kUsage, "it must be more than 0");
  return time;
}

std::vector<Row> table(Settings& settings) {
  SyncOptions& options = settings.options;
  const auto option = [&options](Status (*set)(std::string_view, SyncOptions&)) {
    return [&options, set](std::string_view text) { return set(text, options); };
  };
  std::vector<Row> rows = {
      {"VOLUME", path_into(settings.volume)},
      {"KEYS", path_into(settings.keys)},
      {"ADDRESS", [&](std::string_view text) { return set_address(text, settings.address); }},
      {"PORT", into(settings.port, parse_port)},
      {"LISTEN", into(settings.listen, parse_listen)},
      {"REPLICATION_ID", text_into(settings.replication_id, kMaxReplicationId)},
      {"EPOCH", into(settings.epoch, parse_epoch)},
      {"SEQ", into(settings.seq, parse_number)},
      {"ATTEMPT", text_into(settings.attempt, kMaxAttempt)},
      {"SOURCE_VOLUME_ID", text_into(settings.source_volume_id, kMaxVolumeId)},
      {"VOLUME_SIZE", into(settings.volume_size, parse_number)},
      {"FINAL_SYNC_ID", text_into(settings.final_sync_id, kMaxFinalSyncId)},
      {"ACKNOWLEDGE", text_into(settings.acknowledged, kMaxAcknowledged)},
      {"COMPRESSION", option(set_compression)},
      {"BANDWIDTH_LIMIT", into(options.bandwidth_limit, parse_rate)},
      {"DELETE", into(options.delete_extra, parse_bool)},
      {"PRESERVE", option(set_preserve)},
      {"EXCLUDE", option(set_exclude)},
      {"VERIFY", option(set_verify)},
      {"INPLACE", into(options.inplace, parse_bool)},
      {"RETRIES", into(options.retries, parse_retries)},
      {"CONNECT_TIMEOUT", into(options.connect_timeout, parse_positive_seconds)},
      {"TIMEOUT", into(options.timeout, parse_seconds_s)},
      {"SYNC_TIMEOUT", into(settings.sync_timeout, parse_duration)},
      {"METRICS", [&](std::string_view text) { return set_metrics(text, settings.metrics); }},
      {"TERMINATION_LOG", [](std::string_view) { return Status(); }},
      {"LOG_LEVEL", into(settings.log_level, parse_log_level)},
  };
  const ResourceConverters resources = resource_converters(options);
  rows.insert(rows.end(), {{"STREAMS", resources.streams},
                           {"THREADS", resources.threads},
                           {"MEMORY", resources.memory},
                           {"IO", resources.io},
                           {"DIRECT", resources.direct}});
  return rows;
}

// What a claim must arrive with: everything but what is excluded, and nothing else.
Settings defaults(Role role) {
  Settings settings;
  settings.role = role;
  settings.options.delete_extra = true;
  settings.options.retries = 5;
  settings.options.connect_timeout = std::chrono::seconds(60);
  return settings;
}

// What Kubernetes sets for each Service of a namespace unless the pod says `enableServiceLinks:
// false`, such as VOLFERRY_WEB_SERVICE_HOST or VOLFERRY_PORT=tcp://10.0.0.1:80: settings of nobody.
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
bool is_service_link(std::string_view name, std::string_view text) {
  static const std::regex names(
      "_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
      "$");
  static const std::regex addresses("(tcp|udp|sctp)://.*");
  if (std::regex_search(name.begin(), name.end(), names)) return true;
  return name.ends_with("_PORT") && std::regex_match(text.begin(), text.end(), addresses);
}

}  // namespace

std::string_view role_name(Role role) { return role == Role::kSource ? "source" : "destination"; }

Environment process_environment() {
  Environment found;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view line = *each;
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    if (is_service_link(line.substr(0, equals), line.substr(equals + 1))) continue;
    found.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return found;
}

Result<Settings> parse_settings(Role role, const Environment& environment) {
  Settings settings = defaults(role);
  const std::vector<Row> rows = table(settings);
  for (const auto& [name, text] : environment) {
    const std::string_view key = std::string_view(name).substr(kPrefix.size());
    const auto row =
        std::ranges::find_if(rows, [key = key](const Row& each) { return each.name == key; });
    if (row == rows.end())
      return fail_with(Code::kUsage, fmt::format("{}: no such setting; docs/mover.md lists them",
                                                 escape_bytes(name.substr(0, 128))));
    if (text.empty()) continue;
    if (const Status status = row->apply(text); !status)
      return fail_with(Code::kUsage, fmt::format("{}: {}", name, status.error().message()));
  }
  if (role == Role::kSource && settings.address.empty())
    return fail_with(Code::kUsage, "VOLFERRY_ADDRESS: the destination's address is needed");
  return settings;
}

std::string termination_log(const Environment& environment) {
  const auto found = environment.find(kTerminationLog);
  return found == environment.end() || found->second.empty() ? "/dev/termination-log"
                                                             : found->second;
}

Result<ListenAddress> parse_metrics_address(std::string_view text) {
  // Without a port it would be that of the transfer.
  const bool has_port = !text.ends_with(']') && text.find(':') != std::string_view::npos;
  if (!has_port)
    return fail_with(Code::kUsage,
                     fmt::format("'{}' is not ADDR:PORT, IPv6 in brackets", escape_bytes(text)));
  return parse_listen(text);
}

Result<std::string> choose_volume(const Settings& settings) {
  if (!settings.volume.empty()) {
    if (::access(settings.volume.c_str(), F_OK) == 0) return settings.volume;
    return fail_with(Code::kUsage,
                     fmt::format("VOLFERRY_VOLUME: {}", escape_bytes(settings.volume)), errno);
  }
  if (::access("/data", F_OK) == 0) return "/data";
  // Outside containers /dev/block is a folder of links.
  struct stat status{};
  if (::stat("/dev/block", &status) == 0 && S_ISBLK(status.st_mode)) return "/dev/block";
  return fail_with(Code::kUsage, "VOLFERRY_VOLUME: neither /data nor /dev/block is mounted");
}

}  // namespace volferry::cli::mover
