// SPDX-License-Identifier: Apache-2.0
// What each command was asked to do, read from its arguments. Pure but for `--exclude-from`, which
// reads its file.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "cli/endpoint.h"
#include "cli/mover/settings.h"

#include "engine/base/error.h"
#include "engine/options.h"

namespace volferry::cli {

enum class When { kAuto, kOn, kOff };

// What is shown of the work.
struct OutputArguments {
  When progress = When::kAuto;
  std::chrono::milliseconds progress_interval{1000};  // of JSON events within a phase
  bool itemize = false;
  bool json = false;
  bool stats = false;
  bool quiet = false;
  int verbose = 0;
};

// Files that authenticate this end; either a PSK file or the three certificate files, or neither.
struct KeyArguments {
  std::string psk_file;
  std::string psk_identity;  // empty: the first line of the file
  std::string cert;
  std::string key;
  std::string ca;
  bool empty() const { return psk_file.empty() && cert.empty(); }
};

// `sync`, and `verify` with the options that make sense there.
struct SyncArguments {
  std::string source;
  std::string destination;
  Endpoint source_endpoint;
  Endpoint destination_endpoint;  // ssh commands filled in, TLS credentials not yet loaded
  SyncOptions options;
  KeyArguments keys;
  OutputArguments output;
};

struct ServeArguments {
  ListenAddress listen;
  std::string root;
  bool read_only = false;
  bool write_only = false;
  bool once = false;
  bool stdio = false;
  bool confine = true;
  SyncOptions limits;
  KeyArguments keys;
  OutputArguments output;
};

struct MoverArguments {
  mover::Role role = mover::Role::kSource;
  // Nothing: as the environment says. Without an address in it: none is served.
  std::optional<std::optional<ListenAddress>> metrics;
};

struct KeygenArguments {
  std::string identity = "volferry";
  std::string output;  // empty: standard output
};

struct BenchArguments {
  bool json = false;
  std::string directory = ".";
  std::chrono::milliseconds seconds{500};  // for each measurement
};

struct VersionArguments {
  bool json = false;
};

// The help text, where that was asked for.
struct Help {
  std::string text;
};
// Errors are kUsage: one line that names the option or argument and says what to do.
template <typename Arguments>
using Parsed = Result<std::variant<Arguments, Help>>;

// `arguments`: what follows the command's name.
Parsed<SyncArguments> parse_sync(const std::vector<std::string>& arguments);
Parsed<SyncArguments> parse_verify(const std::vector<std::string>& arguments);
Parsed<ServeArguments> parse_serve(const std::vector<std::string>& arguments);
Parsed<MoverArguments> parse_mover(const std::vector<std::string>& arguments);
Parsed<MoverArguments> parse_volsync(const std::vector<std::string>& arguments);
Parsed<KeygenArguments> parse_keygen(const std::vector<std::string>& arguments);
Parsed<BenchArguments> parse_bench(const std::vector<std::string>& arguments);
Parsed<VersionArguments> parse_version(const std::vector<std::string>& arguments);

// The list of commands, for `volferry --help`.
std::string main_help();
// A usage error for a word that is no command, with the nearest one.
std::unexpected<Error> unknown_command(std::string_view word);

}  // namespace volferry::cli
