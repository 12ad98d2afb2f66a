// SPDX-License-Identifier: Apache-2.0
// What the mover is asked to do, read from its environment. docs/mover.md has the table.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/endpoint.h"

#include "engine/base/log.h"
#include "engine/options.h"

namespace volferry::cli::mover {

enum class Role : std::uint8_t { kSource, kDestination };
// "source" or "destination".
std::string_view role_name(Role role);

inline constexpr std::string_view kPrefix = "VOLFERRY_";
inline constexpr std::uint16_t kMetricsPort = 9100;

struct Settings {
  Role role = Role::kSource;
  std::string volume;  // empty: chosen by what exists, see `choose_volume`
  std::string keys = "/keys";
  std::string address;  // source: host name or address, without brackets
  std::uint16_t port = kDefaultPort;
  ListenAddress listen;  // destination

  std::string replication_id;
  std::string epoch;
  std::uint64_t seq = 0;
  std::string attempt;
  std::string source_volume_id;
  std::uint64_t volume_size = 0;
  std::string final_sync_id;
  std::string acknowledged;  // tokens, separated by commas

  // Attributes, filters, resources, compression, timeouts. `connect_timeout` is the time within
  // which the first connection has to succeed, all tries together.
  SyncOptions options;
  std::chrono::milliseconds sync_timeout{0};  // 0: none

  // A source starts anew after each of these, where its run did not complete and another one might.
  std::vector<std::chrono::seconds> pauses;
  // Only a transfer of everything completes: not one with items that failed or changed.
  bool whole_only = false;
  // A destination ends where a peer bears its key and speaks another protocol.
  bool stop_at_stranger = false;
  // A destination leaves the attributes of the volume's root as they are.
  bool keep_root = false;
  // A destination leaves file capabilities out where it may not set them, and says so.
  bool spare_capabilities = false;

  std::optional<ListenAddress> metrics = ListenAddress{.host = "", .port = kMetricsPort};
  base::LogLevel log_level = base::LogLevel::kInfo;
};

using Environment = std::map<std::string, std::string, std::less<>>;

// Those variables of the process that begin with VOLFERRY_.
Environment process_environment();

// Errors: kUsage, one line that begins with the variable's name. Pure.
Result<Settings> parse_settings(Role role, const Environment& environment);

// Where the result goes; known before anything else, so that a bad setting can be reported there.
std::string termination_log(const Environment& environment);

// ADDR:PORT of the HTTP endpoint.
Result<ListenAddress> parse_metrics_address(std::string_view text);

// The volume: the one that was named, else /data if it exists, else /dev/block. kUsage if it does
// not exist.
Result<std::string> choose_volume(const Settings& settings);

}  // namespace volferry::cli::mover
