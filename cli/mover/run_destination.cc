// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

#include "cli/mover/run.h"
#include "cli/output.h"
#include "cli/service.h"

#include "engine/session/installer.h"
#include "engine/session/volume.h"

namespace volferry::cli::mover {

namespace {

// A session that came to its end: all, or all but the items that were named.
bool completed(const Summary& summary, bool whole_only) {
  const int code = summary.exit_code();
  const bool partial =
      code == exit_code(Code::kItemFailed) || code == exit_code(Code::kSourceChanged);
  return code == 0 || (partial && !whole_only);
}

// Ends whose reason is the volume here, so that the next source would meet it too. A refusal that
// the peer sent is its own affair, whatever its code.
bool own_fault(const Summary& summary) {
  if (!summary.fatal || summary.fatal->context.starts_with("peer: ")) return false;
  const Code code = summary.fatal->code;
  return code == Code::kDestinationFull || code == Code::kDestinationWrite ||
         code == Code::kDestinationTooSmall;
}

ServeOptions serve_options(const RunParts& parts) {
  ServeOptions options;
  options.root = parts.volume;
  options.allow_pull = false;
  options.once = true;  // one after the other
  options.whole_pushes = true;
  options.confine = false;  // the whole process is
  options.keep_root = parts.settings.keep_root;
  options.spare_capabilities = parts.settings.spare_capabilities;
  options.limits = parts.settings.options;
  options.limits.check_peer = peer_check(parts);
  return options;
}

// The peer that ended the waiting. Thread-safe.
class Stranger {
 public:
  void stop_at(const Error& error, StopFlag& stop) {
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
    }
    int running = 0;
    stop.compare_exchange_strong(running, exit_code(error.code));
  }
  std::optional<Error> error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// A destination that is just ending elsewhere may still write here; a source that met it would take
// that for a fault that stays.
Status wait_for_volume(const RunParts& parts) {
  bool told = false;
  while (parts.stop.load() == 0) {
    VF_ASSIGN(const session::Volume volume, session::open_destination(parts.volume, ""));
    const auto lock = session::lock_destination(volume, std::chrono::milliseconds(500));
    if (lock) return {};
    if (lock.error().os_errno != 0) return std::unexpected(lock.error());
    if (!told) parts.logger.log(base::LogLevel::kWarn, lock.error().message());
    told = true;
  }
  return {};
}

}  // namespace

Summary run_destination(const RunParts& parts,
                        const std::function<void(const std::string&)>& listening) {
  const auto begin = std::chrono::steady_clock::now();
  if (const Status ready = wait_for_volume(parts); !ready) return failed_summary(ready.error());
  transport::ServerOptions server_options;
  server_options.listen_host = parts.settings.listen.host;
  server_options.port = parts.settings.listen.port;
  server_options.psk = parts.keys;
  Stranger stranger;
  server_options.incompatible = [&](const Error& error) {
    parts.live.refuse(error);
    if (parts.settings.stop_at_stranger) stranger.stop_at(error, parts.stop);
  };
  auto service = start_service(std::move(server_options), parts.settings.options, parts.logger);
  if (!service) return failed_summary(service.error());
  listening(service->server->address());

  const ServeOptions options = serve_options(parts);
  if (options.spare_capabilities && !session::may_set_capabilities())
    parts.logger.log(base::LogLevel::kInfo,
                     "file capabilities are left out: without CAP_SETFCAP they cannot be set");
  for (;;) {
    Summary last = failed_summary({Code::kTerminated, 0, "terminated while waiting for a source"});
    const int code =
        run_serve(*service->server, options, parts.observer, parts.logger, parts.stop, &last);
    parts.live.end_session();
    last.elapsed_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (completed(last, parts.settings.whole_only) || own_fault(last)) return last;
    if (auto met = stranger.error()) {
      last.fatal = *std::move(met);
      return last;
    }
    if (const int stop = parts.stop.load(); stop != 0) {
      const Code why =
          stop == exit_code(Code::kInterrupted) ? Code::kInterrupted : Code::kTerminated;
      if (last.exit_code() != stop) last.fatal = Error{why, 0, "terminated"};
      return last;
    }
    // Without a session, and not told to stop: the listener itself is broken.
    const bool waiting = last.fatal && last.fatal->code == Code::kTerminated;
    if (waiting) {
      last.fatal = Error{Code::kInternal, 0,
                         "the server stopped accepting, exit code " + std::to_string(code)};
      return last;
    }
    parts.logger.log(base::LogLevel::kInfo, "waiting for the next source");
  }
}

}  // namespace volferry::cli::mover
