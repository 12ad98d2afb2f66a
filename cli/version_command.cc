// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <spdlog/version.h>
#include <xxhash.h>
#include <zstd.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"

#include "engine/io/queue.h"
#include "engine/transport/wire/limits.h"

namespace volferry::cli {

namespace {

using Versions = std::vector<std::pair<std::string, std::string>>;

std::string three(unsigned major, unsigned minor, unsigned patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

Versions libraries() {
  const unsigned xxh = XXH_versionNumber();
  return {
      {"liburing", VOLFERRY_LIBURING_VERSION},
      {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"xxhash", three(xxh / 10000, xxh / 100 % 100, xxh % 100)},
      {"zstd", ZSTD_versionString()},
      {"fmt", three(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"spdlog", three(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
      {"cli11", CLI11_VERSION},
      {"nlohmann-json", three(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                              NLOHMANN_JSON_VERSION_PATCH)},
  };
}

std::string protocol() { return fmt::format("{}.{}", wire::kVersionMajor, wire::kVersionMinor); }

struct Backends {
  std::vector<std::string> found;  // the best one first; threads always works
  std::string why;
};
Backends probe() {
  const auto probed = io::probe_backend(io::BackendChoice::kAuto);
  Backends backends;
  if (probed) backends.why = probed->why;
  if (probed && probed->backend == io::Backend::kUringFixed)
    backends.found.emplace_back(io::backend_name(io::Backend::kUringFixed));
  if (probed && probed->backend != io::Backend::kThreads)
    backends.found.emplace_back(io::backend_name(io::Backend::kUring));
  backends.found.emplace_back(io::backend_name(io::Backend::kThreads));
  return backends;
}

std::string version_json() {
  const Backends backends = probe();
  nlohmann::ordered_json json = {{"version", VOLFERRY_VERSION}, {"protocol", protocol()}};
  for (const auto& [name, version] : libraries()) json["libraries"][name] = version;
  json["io_backends"] = backends.found;
  json["io_probe"] = backends.why;
  return json.dump();
}

void print_text(Console& console) {
  const Backends backends = probe();
  console.out("volferry " VOLFERRY_VERSION);
  console.out(fmt::format("{:<15}{}", "protocol", protocol()));
  for (const auto& [name, version] : libraries())
    console.out(fmt::format("{:<15}{}", name, version));
  console.out(fmt::format("{:<15}{}", "io", fmt::join(backends.found, ", ")));
  if (!backends.why.empty()) console.out(fmt::format("{:<15}{}", "io probe", backends.why));
}

}  // namespace

int version_command(const CommandArguments& arguments, Console& console) {
  const auto parsed = parse_version(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed))
    console.out_text(help->text);
  else if (std::get<VersionArguments>(*parsed).json)
    console.out(version_json());
  else
    print_text(console);
  return 0;
}

}  // namespace volferry::cli
