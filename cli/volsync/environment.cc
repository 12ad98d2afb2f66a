// SPDX-License-Identifier: Apache-2.0
#include "cli/volsync/environment.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "cli/escape.h"

namespace volferry::cli::volsync {

namespace {

using mover::Environment;
using mover::Role;
using mover::Settings;

constexpr const char* kAddress = "DESTINATION_ADDRESS";
constexpr const char* kPrivileged = "PRIVILEGED_MOVER";
constexpr const char* kTlsVersion = "SSL_VERSION_MIN";
constexpr const char* kDebug = "DEBUG_MOVER";
constexpr std::array kTheirs = {kAddress, "DESTINATION_PORT", kPrivileged, kTlsVersion, kDebug};

// Variables with a counterpart: theirs and ours.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSame = {
    {{kAddress, "VOLFERRY_ADDRESS"}, {"DESTINATION_PORT", "VOLFERRY_PORT"}}};

std::string_view value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : found->second;
}

Environment in_our_words(const Environment& environment) {
  Environment ours;
  for (const auto& [name, text] : environment)
    if (name.starts_with(mover::kPrefix)) ours.emplace(name, text);
  for (const auto& [theirs, name] : kSame)
    if (const auto text = value_of(environment, theirs); !text.empty())
      ours.insert_or_assign(std::string(name), std::string(text));
  return ours;
}

// Names the variable that the operator knows of.
Error in_their_words(Error error, const Environment& environment) {
  for (const auto& [theirs, ours] : kSame) {
    if (!error.context.starts_with(ours) || value_of(environment, theirs).empty()) continue;
    error.context.replace(0, ours.size(), theirs);
  }
  return error;
}

Result<bool> privileged(const Environment& environment) {
  const std::string_view text = value_of(environment, kPrivileged);
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  return fail_with(Code::kUsage,
                   fmt::format("{}: '{}' is not 0 or 1", kPrivileged, escape_bytes(text)));
}

// TLS 1.3 is all that is spoken here, so every minimum up to it is kept.
Status check_tls_version(const Environment& environment) {
  const std::string_view text = value_of(environment, kTlsVersion);
  for (const std::string_view known : {"", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"})
    if (text == known) return {};
  return fail_with(Code::kUsage, fmt::format("{}: '{}' is no version of TLS up to TLSv1.3",
                                             kTlsVersion, escape_bytes(text)));
}

}  // namespace

Environment read_environment() {
  Environment found = mover::process_environment();
  for (const char* name : kTheirs)
    if (const char* text = std::getenv(name)) found.emplace(name, text);
  return found;
}

Result<Settings> read_settings(Role role, const Environment& environment) {
  VF_ASSIGN(const bool keeps_owners, privileged(environment));
  VF_TRY(check_tls_version(environment));
  const Environment ours = in_our_words(environment);
  if (role == Role::kSource && value_of(ours, "VOLFERRY_ADDRESS").empty())
    return fail_with(Code::kUsage,
                     fmt::format("{}: not set: the ReplicationSource has to name the address of "
                                 "its destination, spec.rsyncTLS.address",
                                 kAddress));
  auto settings = mover::parse_settings(role, ours);
  if (!settings) return std::unexpected(in_their_words(settings.error(), environment));
  using std::chrono::seconds;
  settings->pauses = {seconds(2), seconds(4), seconds(8), seconds(16), seconds(32)};
  // Each of the tries has to fit in between.
  if (value_of(ours, "VOLFERRY_CONNECT_TIMEOUT").empty())
    settings->options.connect_timeout = seconds(10);
  settings->options.one_file_system = true;
  settings->whole_only = true;
  settings->stop_at_stranger = true;
  settings->keep_root = !keeps_owners;
  // VolSync gives no mover the right to set them.
  settings->spare_capabilities = true;
  return settings;
}

bool wants_debugging(const Environment& environment) {
  return value_of(environment, kDebug) == "1";
}

}  // namespace volferry::cli::volsync
