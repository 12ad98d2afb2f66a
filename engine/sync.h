// SPDX-License-Identifier: Apache-2.0
// The engine's entry points. Blocking; each call runs its own threads and leaves none behind. The
// engine reads no environment variable and keeps no global state.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "engine/observer.h"
#include "engine/options.h"
#include "engine/summary.h"
#include "engine/transport/connect.h"

namespace volferry {

struct LocalEndpoint {
  std::string path;
};
struct TlsEndpoint {
  transport::TlsTarget target;
  transport::TlsCredentials credentials;
  std::string subpath;
};
struct SshEndpoint {
  transport::SshTarget target;
  std::string path;
  std::string ssh_command = "ssh";
  std::string remote_command = "volferry";
};
using Endpoint = std::variant<LocalEndpoint, TlsEndpoint, SshEndpoint>;

// Set from a signal handler or another thread: 0, or the exit code to end with (130, 143). The work
// stops within seconds, consistent: every name is old or new.
using StopFlag = std::atomic<int>;

// Makes `destination` equal to `source`. At most one of them is remote (kUsage otherwise).
Summary run_sync(const Endpoint& source, const Endpoint& destination, const SyncOptions& options,
                 Observer& observer, base::Logger& logger, StopFlag& stop);

// Compares two volumes without changing anything; every difference goes to the observer.
Summary run_verify(const Endpoint& left, const Endpoint& right, const SyncOptions& options,
                   Observer& observer, base::Logger& logger, StopFlag& stop);

// Confines the calling thread, and every thread that it starts from now on, to the volume `root` by
// Landlock, with read access to /proc and `readable` (folders; what is missing is skipped) besides.
// False where the kernel has no Landlock. For programs that run threads of their own around the
// calls here; `ServeOptions::confine` is then not needed.
Result<bool> confine_process(const std::string& root, bool writable,
                             const std::vector<std::string>& readable);

struct ServeOptions {
  std::string root;
  bool allow_push = true;  // clients may write here
  bool allow_pull = true;
  bool once = false;  // end after the first session
  // A push must be one of the whole volume: no sub-path, and no dry run, whose success would be
  // taken for a transfer's.
  bool whole_pushes = false;
  // A push of a tree leaves owner, mode, times and attributes of its root as they are.
  bool keep_root = false;
  // Where this process may not set file capabilities (capabilities(7), CAP_SETFCAP), a push leaves
  // them out instead of failing the files that have them.
  bool spare_capabilities = false;
  bool confine = true;  // Landlock, where the kernel has it
  SyncOptions limits;   // threads, memory, io, direct, durable, timeout, identity, bandwidth
};
// Serves one volume over `server` until stopped (or one session with `once`); returns the exit code
// to end with. `summary_of_last`, if not null, receives the last session's outcome.
int run_serve(transport::Server& server, const ServeOptions& options, Observer& observer,
              base::Logger& logger, StopFlag& stop, Summary* summary_of_last);
// The far end of SSH: one session over the two descriptors.
int run_serve_stdio(base::UniqueFd in, base::UniqueFd out, const ServeOptions& options,
                    Observer& observer, base::Logger& logger, StopFlag& stop);

}  // namespace volferry
