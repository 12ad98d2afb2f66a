// SPDX-License-Identifier: Apache-2.0
#include "cli/option_sets.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <utility>

#include "cli/escape.h"
#include "cli/filter_rules.h"
#include "cli/units.h"

namespace volferry::cli {

namespace {

constexpr std::uint64_t kMinMemoryBytes = 32ull << 20;
constexpr unsigned kMaxStreams = 64;
constexpr unsigned kMaxThreads = 256;
constexpr unsigned kMaxRetries = 1000;
constexpr unsigned kMaxZstdLevel = 19;

// A converter for one word out of a fixed list.
template <typename Choice>
CommandLine::Convert choice(Choice& target,
                            std::initializer_list<std::pair<std::string_view, Choice>> words) {
  return [&target, list = std::vector(words)](std::string_view text) -> Status {
    std::string expected;
    for (const auto& [word, value] : list) {
      if (word == text) {
        target = value;
        return {};
      }
      expected += (expected.empty() ? "" : ", ") + std::string(word);
    }
    return fail_with(Code::kUsage,
                     fmt::format("'{}' is not one of {}", escape_bytes(text), expected));
  };
}

CommandLine::Convert count(unsigned& target, unsigned low, unsigned high) {
  return [&target, low, high](std::string_view text) -> Status {
    VF_ASSIGN(target, parse_count(text, low, high));
    return {};
  };
}

CommandLine::Convert seconds(std::chrono::milliseconds& target) {
  return [&target](std::string_view text) -> Status {
    VF_ASSIGN(target, parse_seconds(text));
    return {};
  };
}

CommandLine::Convert pattern(std::vector<FilterRule>& rules, bool include) {
  return [&rules, include](std::string_view text) -> Status {
    VF_ASSIGN(FilterRule rule, parse_filter_rule(text, include));
    rules.push_back(std::move(rule));
    return {};
  };
}

}  // namespace

Status set_compress(SyncOptions& options, std::string_view text) {
  options.compress_level = 0;
  if (text == "auto") {
    options.compress = CompressChoice::kAuto;
  } else if (text == "off") {
    options.compress = CompressChoice::kOff;
  } else if (text == "zstd" || text.starts_with("zstd:")) {
    options.compress = CompressChoice::kZstd;
    if (text.size() > 4) {
      VF_ASSIGN(const unsigned level, parse_count(text.substr(5), 1, kMaxZstdLevel));
      options.compress_level = static_cast<int>(level);
    }
  } else {
    return fail_with(Code::kUsage, fmt::format("'{}' is not one of auto, off, zstd, zstd:LEVEL",
                                               escape_bytes(text)));
  }
  return {};
}

ResourceConverters resource_converters(SyncOptions& options) {
  return {.streams = count(options.streams, 1, kMaxStreams),
          .threads = count(options.threads, 1, kMaxThreads),
          .memory = [&options](std::string_view text) -> Status {
            VF_ASSIGN(options.memory_bytes, parse_size(text));
            if (options.memory_bytes < kMinMemoryBytes)
              return fail_with(Code::kUsage,
                               fmt::format("'{}' is too little, at least 32Mi is needed", text));
            return {};
          },
          .io = choice(options.io, {{"auto", IoChoice::kAuto},
                                    {"uring", IoChoice::kUring},
                                    {"threads", IoChoice::kThreads}}),
          .direct = choice(options.direct, {{"auto", DirectChoice::kAuto},
                                            {"on", DirectChoice::kOn},
                                            {"off", DirectChoice::kOff}})};
}

void add_selection(CommandLine& line, SyncOptions& options) {
  line.group("Selection (the first pattern that matches decides, in the order given)");
  line.value(
      "--exclude", "PATTERN", pattern(options.filters, false),
      "leave out what matches: rsync's rules, '/' at the start anchors at the root, '*' stops "
      "at a slash, '**' does not, '/' at the end matches directories only");
  line.value("--include", "PATTERN", pattern(options.filters, true), "keep what matches");
  line.value(
      "--exclude-from", "FILE",
      [&options](std::string_view text) -> Status {
        VF_ASSIGN(auto rules, read_filter_file(std::string(text)));
        options.filters.insert(options.filters.end(), rules.begin(), rules.end());
        return {};
      },
      "patterns from a file, one a line; '+ ' before a pattern includes, '#' starts a comment, "
      "FILE '-' is standard input");
  line.flag("-x,--one-file-system", options.one_file_system, "do not cross mount points");
}

void add_attributes(CommandLine& line, SyncOptions& options) {
  line.group("Attributes (all on by default; ids are numeric, times in nanoseconds)");
  line.flag("--owner,!--no-owner", options.owner, "owner and group");
  line.flag("--perms,!--no-perms", options.perms, "mode, with setuid, setgid and sticky");
  line.flag("--times,!--no-times", options.times, "modification times");
  line.flag("--xattrs,!--no-xattrs", options.xattrs, "extended attributes and capabilities");
  line.flag("--acls,!--no-acls", options.acls, "access and default ACLs");
  line.flag("--hardlinks,!--no-hardlinks", options.hardlinks, "hard links stay linked");
  line.flag("--devices,!--no-devices", options.devices, "device nodes, fifos and sockets");
}

void add_limits(CommandLine& line, SyncOptions& options) {
  const ResourceConverters convert = resource_converters(options);
  line.group("Resources");
  line.value(
      "--bwlimit", "RATE",
      [&options](std::string_view text) -> Status {
        VF_ASSIGN(options.bandwidth_limit, parse_rate(text));
        return {};
      },
      "bytes a second over all streams, such as 50M or 1.5Gi; 0: no limit (default)");
  line.value("--streams", "N", convert.streams,
             "connections (default: 1, and 2 once there is much to move)");
  line.value("--threads", "N", convert.threads, "worker threads (default: one a core, at most 8)");
  line.value("--memory", "SIZE", convert.memory,
             "bound on buffers and tables of this process (default 512Mi), whatever the volume's "
             "size");
  line.value("--io", "PATH", convert.io,
             "auto, uring or threads; auto (default) uses io_uring where the kernel lets it");
  line.value("--direct", "WHEN", convert.direct,
             "auto, on or off: O_DIRECT for large files and devices");
}

void add_hash(CommandLine& line, SyncOptions& options) {
  line.value("--hash", "NAME",
             choice(options.hash, {{"xxh3", HashChoice::kXxh3}, {"sha256", HashChoice::kSha256}}),
             "xxh3 (default, keyed for each session) or sha256 (for volumes with hostile writers)");
}

void add_compress(CommandLine& line, SyncOptions& options) {
  line.value(
      "--compress", "HOW",
      [&options](std::string_view text) { return set_compress(options, text); },
      "auto (default: where it pays), off, zstd or zstd:LEVEL (1 to 19)");
}

void add_timeout(CommandLine& line, SyncOptions& options) {
  line.value("--timeout", "SECONDS", seconds(options.timeout),
             "give a silent connection up after that long (default 60; 0: never)");
}

void add_connection(CommandLine& line, SyncOptions& options) {
  add_timeout(line, options);
  line.value("--connect-timeout", "SECONDS", seconds(options.connect_timeout),
             "for connecting and the handshake (default 10)");
  line.value("--retries", "N", count(options.retries, 0, kMaxRetries),
             "reconnects after a lost connection, continuing from what arrived (default 3)");
}

void add_keys(CommandLine& line, KeyArguments& keys) {
  line.text("--psk-file", "FILE", keys.psk_file,
            "pre-shared key for TLS, IDENTITY:HEX a line; make one with 'volferry keygen'");
  line.text("--cert", "FILE", keys.cert, "certificate (PEM) for mutual TLS in place of a key");
  line.text("--key", "FILE", keys.key, "its private key (PEM)");
  line.text("--ca", "FILE", keys.ca,
            "certificate authority (PEM) that the other end is checked by");
}

void add_psk_identity(CommandLine& line, KeyArguments& keys) {
  line.text("--psk-identity", "NAME", keys.psk_identity,
            "which line of the key file to use (default: the first)");
}

void add_output(CommandLine& line, OutputArguments& output) {
  line.flag("--json", output.json, "NDJSON events on standard output, the last one a summary");
  line.flag("--stats", output.stats, "print a table of figures at the end");
  line.flag("-q,--quiet", output.quiet, "errors only");
  line.counter("-v,--verbose", output.verbose,
               "log what happens to standard error; twice: details");
}

void add_progress(CommandLine& line, OutputArguments& output) {
  line.value(
      "--progress", "WHEN",
      choice(output.progress, {{"auto", When::kAuto}, {"on", When::kOn}, {"off", When::kOff}}),
      "auto (default: a live bar where standard error is a terminal), on or off");
}

Status check_keys(const KeyArguments& keys) {
  const bool any = !keys.cert.empty() || !keys.key.empty() || !keys.ca.empty();
  const bool all = !keys.cert.empty() && !keys.key.empty() && !keys.ca.empty();
  if (any && !all) return fail_with(Code::kUsage, "--cert, --key and --ca are needed together");
  if (any && !keys.psk_file.empty())
    return fail_with(Code::kUsage, "--psk-file and --cert exclude each other");
  if (!keys.psk_identity.empty() && keys.psk_file.empty())
    return fail_with(Code::kUsage, "--psk-identity needs --psk-file");
  return {};
}

Status check_output(const OutputArguments& output) {
  if (output.quiet && output.verbose > 0)
    return fail_with(Code::kUsage, "-q and -v exclude each other");
  return {};
}

}  // namespace volferry::cli
