// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/escape.h"
#include "cli/option_sets.h"
#include "cli/units.h"

namespace volferry::cli {

namespace {

constexpr std::string_view kEndpointHelp =
    "Endpoints:\n"
    "  PATH                            a directory, regular file or block device here; a name with "
    "a\n"
    "                                  colon is written ./NAME\n"
    "  [USER@]HOST:PATH                through ssh, also ssh://[USER@]HOST[:PORT]/PATH\n"
    "  tls://HOST[:PORT][/SUBPATH]     a 'volferry serve' (port 8000 unless given)\n"
    "At most one end is remote. IPv6 addresses stand in brackets.\n";

constexpr std::string_view kExitCodes =
    "Exit codes: 0 done; 1 internal error; 2 usage; 3 some items failed; 4 source items vanished "
    "or\n"
    "changed; 10 cannot connect; 11 authentication refused; 12 protocol mismatch; 13 connection "
    "lost;\n"
    "20 destination full; 21 destination write error; 22 source read error; 23 destination too "
    "small;\n"
    "24 differences found; 30 identity refused; 130, 143 interrupted.\n";

// The error of a check that does not know which command it belongs to, with the pointer to the
// help.
Status with_help(const CommandLine& line, const Status& status) {
  if (status) return status;
  return line.usage_error(status.error().message());
}

struct SshCommands {
  std::string ssh = "ssh";
  std::string remote = "volferry";
};
void add_ssh(CommandLine& line, SshCommands& commands) {
  line.text("-e,--ssh", "COMMAND", commands.ssh, "ssh command and its options (default: ssh)");
  line.text("--remote-command", "PATH", commands.remote,
            "volferry at the far end of ssh (default: volferry)");
}

void set_ssh(Endpoint& endpoint, const SshCommands& commands) {
  auto* ssh = std::get_if<SshEndpoint>(&endpoint);
  if (ssh == nullptr) return;
  ssh->ssh_command = commands.ssh;
  ssh->remote_command = commands.remote;
}

// The two ends, checked for what needs no file system: number, form, one remote end, keys for tls.
Status set_endpoints(const CommandLine& line, const std::vector<std::string>& words,
                     const SshCommands& commands, SyncArguments& arguments) {
  if (words.size() != 2)
    return line.usage_error(fmt::format(
        "two endpoints are needed, source and destination, but {} given",
        words.empty() ? std::string("none was")
                      : fmt::format("{} {}", words.size(), words.size() == 1 ? "was" : "were")));
  arguments.source = words[0];
  arguments.destination = words[1];
  Result<Endpoint> source = parse_endpoint(words[0]);
  if (!source) return line.usage_error(source.error().message());
  Result<Endpoint> destination = parse_endpoint(words[1]);
  if (!destination) return line.usage_error(destination.error().message());
  if (is_remote(*source) && is_remote(*destination))
    return line.usage_error(
        fmt::format("'{}' and '{}' are both remote: run volferry on one of the two hosts, with a "
                    "local path there",
                    escape_bytes(words[0]), escape_bytes(words[1])));
  for (const Endpoint* endpoint : {&*source, &*destination}) {
    const auto* tls = std::get_if<TlsEndpoint>(endpoint);
    if (tls != nullptr && arguments.keys.empty())
      return line.usage_error(
          fmt::format("tls://{}: no credentials, give the server's key with --psk-file FILE (or "
                      "--cert, --key, --ca)",
                      escape_bytes(tls->target.host)));
  }
  arguments.source_endpoint = *std::move(source);
  arguments.destination_endpoint = *std::move(destination);
  set_ssh(arguments.source_endpoint, commands);
  set_ssh(arguments.destination_endpoint, commands);
  return {};
}

// Parses, and turns a request for help into the other alternative.
template <typename Arguments>
Parsed<Arguments> finish(const Result<std::optional<std::string>>& parsed,
                         const Arguments& arguments) {
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->has_value()) return Help{**parsed};
  return arguments;
}

Parsed<SyncArguments> finish_endpoints(CommandLine& line, const std::vector<std::string>& words,
                                       const SshCommands& commands, SyncArguments& arguments,
                                       const Result<std::optional<std::string>>& parsed) {
  if (parsed && !parsed->has_value()) {
    VF_TRY(with_help(line, check_keys(arguments.keys)));
    VF_TRY(with_help(line, check_output(arguments.output)));
    if (arguments.options.connect_timeout.count() == 0)
      return line.usage_error("option --connect-timeout: it must be more than 0");
    VF_TRY(set_endpoints(line, words, commands, arguments));
    arguments.options.itemize = arguments.output.itemize;
  }
  return finish(parsed, arguments);
}

}  // namespace

Parsed<SyncArguments> parse_sync(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "sync",
       .synopsis = "[options] SRC DST",
       .description =
           "Makes DST identical to SRC and sends only what differs. A directory goes to a "
           "directory and means its contents; a regular file or block device goes to a file "
           "or block device.",
       .epilog = std::string(kEndpointHelp) +
                 "\nExamples:\n"
                 "  volferry sync --delete /srv/data /mnt/backup\n"
                 "  volferry sync --psk-file key -x /srv/data tls://backup.example/data\n"
                 "  volferry sync root@db1:/var/lib/db ./db\n"
                 "  volferry sync -n -i --delete a b      # what would change\n\n" +
                 std::string(kExitCodes)});
  SyncArguments result;
  SshCommands commands;
  std::vector<std::string> words;
  SyncOptions& options = result.options;
  line.endpoints(words);

  line.group("What is done");
  line.flag("--delete", options.delete_extra,
            "remove from DST what SRC has not; never what is excluded, never lost+found at a root");
  line.flag("-n,--dry-run", options.dry_run, "change nothing, tell what would change");
  line.flag("-i,--itemize-changes", result.output.itemize, "one line for each item that changes");
  line.flag("-c,--checksum", options.checksum, "compare content although size and time agree");
  line.flag("--inplace", options.inplace,
            "write into existing files; the default builds a new file beside and renames it");
  line.flag("--verify", options.verify,
            "afterwards compare strong hashes of everything, DST read again");
  line.flag("--durable,!--no-durable", options.durable,
            "report success only once everything is on stable storage (default), or do not wait");
  add_selection(line, options);
  add_attributes(line, options);
  add_limits(line, options);
  add_hash(line, options);
  add_compress(line, options);
  line.group("Connection");
  add_keys(line, result.keys);
  add_psk_identity(line, result.keys);
  add_ssh(line, commands);
  add_connection(line, options);
  line.group("Output");
  add_progress(line, result.output);
  add_output(line, result.output);

  const auto parsed = line.parse(arguments);
  return finish_endpoints(line, words, commands, result, parsed);
}

Parsed<SyncArguments> parse_verify(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "verify",
       .synopsis = "[options] A B",
       .description =
           "Compares A and B completely, content by strong hash, and prints each difference "
           "as KINDS PATH. Nothing is changed. Kinds: missing (in B), extra (only in B), "
           "type, content, size, mode, owner, group, mtime, xattr, acl, target, hardlink, "
           "rdev.",
       .epilog = std::string(kEndpointHelp) +
                 "\nExample:\n"
                 "  volferry verify --no-times /srv/data tls://backup.example "
                 "--psk-file key\n\n" +
                 std::string(kExitCodes)});
  SyncArguments result;
  SshCommands commands;
  std::vector<std::string> words;
  SyncOptions& options = result.options;
  line.endpoints(words);

  add_selection(line, options);
  add_attributes(line, options);
  add_limits(line, options);
  add_hash(line, options);
  line.group("Connection");
  add_keys(line, result.keys);
  add_psk_identity(line, result.keys);
  add_ssh(line, commands);
  add_connection(line, options);
  line.group("Output");
  add_progress(line, result.output);
  add_output(line, result.output);

  const auto parsed = line.parse(arguments);
  return finish_endpoints(line, words, commands, result, parsed);
}

namespace {

void declare_serve(CommandLine& line, ServeArguments& result) {
  SyncOptions& limits = result.limits;
  line.group("Service");
  line.value(
      "--listen", "ADDR:PORT",
      [&result](std::string_view text) -> Status {
        VF_ASSIGN(result.listen, parse_listen(text));
        return {};
      },
      "where to listen (default [::]:8000, all addresses); port 0 picks a free one");
  line.text("--root", "PATH", result.root, "the volume served: a directory, file or block device");
  line.flag("--read-only", result.read_only, "clients may read, not write");
  line.flag("--write-only", result.write_only, "clients may write, not read");
  line.flag("--once", result.once, "end after one session, with its exit code");
  line.flag("--stdio", result.stdio,
            "serve one session over standard input and output: the far end of ssh");
  line.flag("--confine,!--no-confine", result.confine,
            "keep this process inside the root by Landlock where the kernel has it (default)");
  line.flag("--durable,!--no-durable", limits.durable,
            "report success only once everything is on stable storage (default)");
  line.group("Keys (required, except with --stdio)");
  add_keys(line, result.keys);
  add_limits(line, limits);
  add_timeout(line, limits);
  line.group("Output");
  add_output(line, result.output);
}

Status check_serve(const CommandLine& line, const ServeArguments& arguments) {
  VF_TRY(with_help(line, check_keys(arguments.keys)));
  VF_TRY(with_help(line, check_output(arguments.output)));
  if (arguments.root.empty())
    return line.usage_error("option --root is needed: the volume to serve");
  if (arguments.read_only && arguments.write_only)
    return line.usage_error("--read-only and --write-only exclude each other");
  if (arguments.stdio) {
    if (line.given("--listen")) return line.usage_error("--stdio and --listen exclude each other");
    if (!arguments.keys.empty())
      return line.usage_error("--stdio takes no keys: ssh has authenticated the client");
    if (arguments.output.json)
      return line.usage_error(
          "--stdio and --json exclude each other: standard output carries the protocol");
    return {};
  }
  if (arguments.keys.empty())
    return line.usage_error(
        "serve refuses to start without keys: make one with 'volferry keygen -o FILE' and give it "
        "to "
        "both ends with --psk-file FILE");
  return {};
}

}  // namespace

Parsed<ServeArguments> parse_serve(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "serve",
       .synopsis = "--root PATH --psk-file FILE [options]",
       .description =
           "Serves one volume to volferry clients over TLS 1.3 until it is stopped. Prints "
           "'listening on ADDR:PORT' once it is ready. SIGTERM ends it cleanly; a client "
           "that is connected then is told why.",
       .epilog = "Example:\n"
                 "  volferry keygen -o key && volferry serve --root /srv/data --psk-file key\n\n" +
                 std::string(kExitCodes)});
  ServeArguments result;
  declare_serve(line, result);
  const auto parsed = line.parse(arguments);
  if (parsed && !parsed->has_value()) VF_TRY(check_serve(line, result));
  return finish(parsed, result);
}

namespace {

// What can stand before the colon of a key line and be read back.
Status check_identity(std::string_view identity) {
  if (identity.empty() || identity.size() > 128)
    return fail_with(Code::kUsage, "a name has 1 to 128 characters");
  for (const char c : identity)
    if (c <= ' ' || c == ':' || c == '#' || c == 0x7f)
      return fail_with(Code::kUsage,
                       fmt::format("'{}': only printable ASCII, without ':', '#' and spaces",
                                   escape_bytes(identity)));
  return {};
}

Result<mover::Role> role_of(const std::vector<std::string>& words, const CommandLine& line) {
  if (words == std::vector<std::string>{"source"}) return mover::Role::kSource;
  if (words == std::vector<std::string>{"destination"}) return mover::Role::kDestination;
  return line.usage_error("one role is needed: source or destination");
}

}  // namespace

Parsed<MoverArguments> parse_mover(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "mover",
       .synopsis = "source|destination [--metrics ADDR:PORT]",
       .description =
           "The entry point of the controller's Jobs: moves one volume once and ends. A source "
           "pushes to a destination; a destination waits for one transfer. All settings come from "
           "environment variables VOLFERRY_...; docs/mover.md lists them. Events and the result "
           "are JSON lines on standard output.",
       .epilog = "Example:\n"
                 "  VOLFERRY_ADDRESS=replica.example VOLFERRY_VOLUME=/srv/data "
                 "VOLFERRY_KEYS=/etc/volferry/keys \\\n"
                 "    volferry mover source\n"});
  MoverArguments result;
  std::vector<std::string> words;
  line.endpoints(words);
  line.value(
      "--metrics", "ADDR:PORT",
      [&result](std::string_view text) -> Status {
        result.metrics.emplace();
        if (text == "off") return {};
        VF_ASSIGN(*result.metrics, mover::parse_metrics_address(text));
        return {};
      },
      "where /metrics, /healthz and /progress are served, or off (default: VOLFERRY_METRICS, else "
      "[::]:9100)");
  const auto parsed = line.parse(arguments);
  if (parsed && !parsed->has_value()) {
    VF_ASSIGN(result.role, role_of(words, line));
  }
  return finish(parsed, result);
}

Parsed<MoverArguments> parse_volsync(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "volsync",
       .synopsis = "source|destination",
       .description =
           "The mover as VolSync's operator runs its rsync-tls mover: started by "
           "/mover-rsync-tls/client.sh and server.sh of the image, settings from the environment "
           "that the operator gives; docs/volsync.md lists them. Both ends have to be volferry.",
       .epilog = "Example:\n"
                 "  DESTINATION_ADDRESS=replica.example PRIVILEGED_MOVER=0 volferry volsync "
                 "source\n"});
  MoverArguments result;
  std::vector<std::string> words;
  line.endpoints(words);
  const auto parsed = line.parse(arguments);
  if (parsed && !parsed->has_value()) {
    VF_ASSIGN(result.role, role_of(words, line));
  }
  return finish(parsed, result);
}

Parsed<KeygenArguments> parse_keygen(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "keygen",
       .synopsis = "[--identity NAME] [-o FILE]",
       .description = "Makes a pre-shared key for TLS and prints it as NAME:HEX, 32 random bytes. "
                      "Give the same line to both ends with --psk-file.",
       .epilog = "Example:\n  volferry keygen -o volferry.key\n"});
  KeygenArguments result;
  line.value(
      "--identity", "NAME",
      [&result](std::string_view text) -> Status {
        VF_TRY(check_identity(text));
        result.identity = text;
        return {};
      },
      "name before the colon (default: volferry)");
  line.text("-o,--output", "FILE", result.output,
            "create FILE, readable by its owner only; never overwrites");
  return finish(line.parse(arguments), result);
}

Parsed<BenchArguments> parse_bench(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "bench",
       .synopsis = "[options]",
       .description =
           "Measures in under a minute how fast this machine reads, writes, hashes, finds "
           "differences, encrypts and creates files, each beside the machine's own limit, "
           "and names the likely bottleneck. Needs 300 MB in the directory and 700 MB of "
           "memory for that time.",
       .epilog = "Example:\n  volferry bench --dir /mnt/volume\n"});
  BenchArguments result;
  line.flag("--json", result.json, "one JSON object a measurement, and a summary");
  line.text("--dir", "PATH", result.directory,
            "directory whose file system is measured (default: the current one)");
  line.value(
      "--seconds", "SECONDS",
      [&result](std::string_view text) -> Status {
        VF_ASSIGN(result.seconds, parse_seconds(text));
        if (result.seconds.count() == 0) return fail_with(Code::kUsage, "it must be more than 0");
        return {};
      },
      "length of each measurement (default 0.5)");
  return finish(line.parse(arguments), result);
}

Parsed<VersionArguments> parse_version(const std::vector<std::string>& arguments) {
  CommandLine line(
      {.name = "version",
       .synopsis = "[--json]",
       .description =
           "Prints the versions of the program, its protocol and its libraries, and the I/O "
           "backends that work here.",
       .epilog = "Example:\n  volferry version --json\n"});
  VersionArguments result;
  line.flag("--json", result.json, "one JSON object");
  return finish(line.parse(arguments), result);
}

namespace {

struct CommandRow {
  std::string_view name;
  std::string_view what;
};
constexpr CommandRow kCommands[] = {
    {"sync", "make one volume identical to another"},
    {"serve", "serve a volume to clients over TLS, or over ssh with --stdio"},
    {"mover", "one transfer for a Kubernetes Job, settings from the environment"},
    {"volsync", "the same in place of VolSync's rsync-tls mover"},
    {"verify", "compare two volumes completely"},
    {"bench", "measure this machine"},
    {"keygen", "make a pre-shared key"},
    {"version", "print versions and what this machine supports"},
};

}  // namespace

std::string main_help() {
  std::string out =
      "Usage: volferry COMMAND [options]\n\n"
      "Moves volumes: makes a directory tree, file or block device identical to another one, here "
      "or\n"
      "over TLS 1.3 or ssh, sending only what changed.\n\n"
      "Commands:\n";
  for (const CommandRow& row : kCommands) out += fmt::format("  {:<10}{}\n", row.name, row.what);
  return out +
         "\n'volferry COMMAND --help' lists a command's options.\n\n"
         "Example:\n  volferry sync --delete /srv/data /mnt/backup\n";
}

std::unexpected<Error> unknown_command(std::string_view word) {
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) names.emplace_back(row.name);
  const std::optional<std::string> near = nearest_name(word, names);
  const std::string guess = near ? fmt::format(", did you mean {}?", *near) : "";
  return fail_with(Code::kUsage, fmt::format("unknown command '{}'{}; see 'volferry --help'",
                                             escape_bytes(word), guess));
}

}  // namespace volferry::cli
