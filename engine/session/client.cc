// SPDX-License-Identifier: Apache-2.0
// The client's side of `sync` and `verify`: local, or with a peer, reconnecting after a lost
// connection.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/random.h"
#include "engine/session/local_sync.h"
#include "engine/session/remote_session.h"
#include "engine/session/sizes.h"
#include "engine/sync.h"

namespace volferry {

namespace {

using namespace session;  // NOLINT(google-build-using-namespace): this file is that folder's face

struct Remote {
  const Endpoint& endpoint;
  std::string local_path;
  bool push = true;  // the local end is the source
};

wire::Start make_start(const SyncOptions& options, const Remote& remote, bool verify_only) {
  wire::Start start;
  start.direction = remote.push ? wire::Direction::kPush : wire::Direction::kPull;
  start.flags = start_flags(options, verify_only);
  start.hash =
      options.hash == HashChoice::kSha256 ? wire::HashKind::kSha256 : wire::HashKind::kXxh3;
  start.hash_secret.resize(delta::StrongHash::kSecretBytes);
  base::fill_random(start.hash_secret);
  switch (options.compress) {
    case CompressChoice::kAuto:
      start.compress = wire::CompressMode::kAuto;
      break;
    case CompressChoice::kOff:
      start.compress = wire::CompressMode::kOff;
      break;
    case CompressChoice::kZstd:
      start.compress = wire::CompressMode::kZstd;
      break;
  }
  start.compress_level = options.compress_level;
  start.bandwidth_limit = options.bandwidth_limit;
  if (const auto* tls = std::get_if<TlsEndpoint>(&remote.endpoint)) start.subpath = tls->subpath;
  for (const FilterRule& rule : options.filters)
    start.filters.push_back({rule.include, rule.pattern});
  return start;
}

Result<std::unique_ptr<transport::Channel>> connect(const Remote& remote,
                                                    const transport::ChannelOptions& options,
                                                    const std::atomic<bool>& cancel) {
  if (const auto* tls = std::get_if<TlsEndpoint>(&remote.endpoint)) {
    return transport::connect_tls(tls->target, tls->credentials, options, cancel);
  }
  const auto& ssh = std::get<SshEndpoint>(remote.endpoint);
  std::vector<std::string> args{"serve", "--stdio", "--root", ssh.path};
  return transport::connect_ssh(ssh.target, ssh.ssh_command, ssh.remote_command, args, options,
                                cancel);
}

// One connection's worth of work. `connected` is set once the peer has answered.
Summary attempt(const Remote& remote, const SyncOptions& sync_options, bool verify_only,
                Observer& observer, base::Logger& logger, StopFlag& stop, bool& connected) {
  Tally tally(observer);
  Summary figures;
  const auto work = [&]() -> Status {
    wire::Start start = make_start(sync_options, remote, verify_only);
    VolumeOptions options = volume_options(start);
    Volume volume;
    if (remote.push || verify_only) {
      VF_ASSIGN(volume, open_source(remote.local_path, ""));
    } else {
      VF_ASSIGN(volume, open_destination(remote.local_path, ""));
    }
    start.root_kind = volume.kind;
    start.root_size = volume.size;
    base::UniqueFd lock;
    if (!remote.push && !options.read_only()) {
      VF_ASSIGN(lock, lock_destination(volume, std::chrono::milliseconds(0)));
    }
    VF_ASSIGN(Runtime runtime, Runtime::create(sync_options, true, logger));
    figures.io = runtime.io_name();

    std::atomic<bool> cancel{false};
    std::mutex channel_mutex;
    std::unique_ptr<transport::Channel> channel;
    Monitor monitor(
        tally, stop,
        [&](const Error& error) {
          cancel.store(true);
          runtime.work_pool->cancel();
          const std::lock_guard guard(channel_mutex);
          if (channel != nullptr) channel->abort(error);
        },
        [&](ProgressSnapshot::Phase phase) {
          {
            const std::lock_guard guard(channel_mutex);
            if (channel != nullptr) count_wire(tally, *channel);
          }
          tally.progress(phase);
        });

    transport::ChannelOptions channel_options;
    channel_options.logger = &logger;
    channel_options.list_credit = runtime.list_credit;
    channel_options.data_credit = runtime.data_credit;
    channel_options.receive_pool = runtime.receive_pool.get();
    channel_options.streams = std::max(1u, sync_options.streams);
    channel_options.busy_streams = sync_options.streams == 0 ? kBusyStreams : 0;
    channel_options.bandwidth_limit = sync_options.bandwidth_limit;
    channel_options.idle_timeout = sync_options.timeout;
    channel_options.connect_timeout = sync_options.connect_timeout;
    channel_options.identity = sync_options.identity;
    // Whoever wants to look at the peer first says nothing before.
    wire::Frame opening = wire::make_frame(start);
    const bool at_once = !sync_options.check_peer && opening.head.size() <= wire::kMaxHelloHead;
    if (at_once) channel_options.opening = &opening;
    auto opened = connect(remote, channel_options, cancel);
    if (!opened) {
      if (auto fatal = tally.fatal()) return std::unexpected(*fatal);
      return std::unexpected(opened.error());
    }
    {
      const std::lock_guard guard(channel_mutex);
      channel = std::move(*opened);
    }
    connected = true;
    logger.log(base::LogLevel::kInfo, "connected peer=\"" + channel->peer_agent() + "\"");
    Conversation conversation(*channel, tally);
    channel->start(conversation);
    const auto talk = [&]() -> Status {
      if (sync_options.check_peer) {
        VF_ASSIGN(const PeerTrust trust, sync_options.check_peer(channel->peer_identity()));
        options.checksum |= trust == PeerTrust::kContentOnly;
      }
      if (!at_once) VF_TRY(channel->send(std::move(opening)));
      VF_ASSIGN(const wire::StartAck ack, conversation.wait_start_ack());
      const wire::RootKind source = remote.push ? volume.kind : ack.root_kind;
      const wire::RootKind destination = remote.push ? ack.root_kind : volume.kind;
      VF_TRY(check_pairing(source, destination, verify_only));
      const RemoteSession session{*channel, conversation, runtime, tally,
                                  monitor,  start,        options, sync_options.direct};
      if (remote.push) return run_sender(session, volume, true);
      if (!options.read_only()) VF_TRY(create_destination(volume, source));
      return run_receiver(session, volume, source);
    };
    Status done = talk();
    if (!done) tally.fail(done.error());
    if (done && !tally.stopped()) {
      (void)channel->finish(std::chrono::seconds(5));
    } else {
      channel->abort(tally.fatal().value_or(Error{Code::kCancelled, 0, "stopped"}));
    }
    const transport::ChannelStats stats = channel->stats();
    figures.wire_sent = stats.wire_sent;
    figures.wire_received = stats.wire_received;
    figures.streams = stats.streams;
    figures.peak_buffers = runtime.peak_buffers();
    const std::lock_guard guard(channel_mutex);
    channel.reset();
    return done;
  };
  if (auto done = work(); !done) tally.fail(done.error());
  Summary summary = tally.summary();
  summary.io = figures.io;
  summary.wire_sent = figures.wire_sent;
  summary.wire_received = figures.wire_received;
  summary.streams = figures.streams;
  summary.peak_buffers = figures.peak_buffers;
  return summary;
}

std::string describe(const Endpoint& endpoint) {
  if (const auto* tls = std::get_if<TlsEndpoint>(&endpoint)) {
    return tls->target.host + ":" + std::to_string(tls->target.port);
  }
  return std::get<SshEndpoint>(endpoint).target.host;
}

// Waits before reconnect number `attempt`; false if the program is told to stop.
bool back_off(unsigned attempt, StopFlag& stop) {
  const auto delay = std::chrono::milliseconds(std::min(500u << std::min(attempt, 5u), 15'000u));
  const auto deadline = std::chrono::steady_clock::now() + delay;
  while (std::chrono::steady_clock::now() < deadline) {
    if (stop.load() != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

Summary run_remote(const Remote& remote, const SyncOptions& options, bool verify_only,
                   Observer& observer, base::Logger& logger, StopFlag& stop) {
  const auto begin = std::chrono::steady_clock::now();
  bool had_session = false;
  Summary before;  // of lost attempts: what crossed the wire counts
  for (unsigned reconnects = 0;; ++reconnects) {
    bool connected = false;
    Summary summary = attempt(remote, options, verify_only, observer, logger, stop, connected);
    summary.wire_sent += before.wire_sent;
    summary.wire_received += before.wire_received;
    if (reconnects > 0) {
      summary.literal_bytes += before.literal_bytes;
      summary.files_transferred += before.files_transferred;
    }
    summary.reconnects = reconnects;
    summary.elapsed_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool lost = summary.fatal && (summary.fatal->code == Code::kConnectionLost ||
                                        summary.fatal->code == Code::kTimeout ||
                                        (summary.fatal->code == Code::kConnect &&
                                         (reconnects > 0 || summary.fatal->os_errno == ECONNRESET ||
                                          summary.fatal->os_errno == EPIPE)));
    if (!lost) return summary;
    // Once there was a session, failing to get it back is a lost connection, not an address that
    // leads nowhere.
    if (had_session || connected) summary.fatal->code = Code::kConnectionLost;
    had_session = had_session || connected;
    if (reconnects >= options.retries) {
      summary.fatal->context = describe(remote.endpoint) + ": " + summary.fatal->context;
      return summary;
    }
    logger.log(base::LogLevel::kWarn, "connection lost, reconnecting: " + summary.fatal->message());
    before = summary;
    if (!back_off(reconnects, stop)) return summary;
  }
}

Summary refuse(std::string why) {
  Summary summary;
  summary.fatal = Error{Code::kUsage, 0, std::move(why)};
  return summary;
}

Summary run(const Endpoint& source, const Endpoint& destination, const SyncOptions& options,
            bool verify_only, Observer& observer, base::Logger& logger, StopFlag& stop) {
  const auto* local_source = std::get_if<LocalEndpoint>(&source);
  const auto* local_destination = std::get_if<LocalEndpoint>(&destination);
  if (local_source != nullptr && local_destination != nullptr) {
    return run_local(local_source->path, local_destination->path, options, verify_only, observer,
                     logger, stop);
  }
  if (local_source == nullptr && local_destination == nullptr) {
    return refuse("both ends are remote; run volferry on one of the two machines");
  }
  const bool push = local_source != nullptr;
  const Remote remote{push ? destination : source,
                      push ? local_source->path : local_destination->path, push};
  return run_remote(remote, options, verify_only, observer, logger, stop);
}

}  // namespace

Summary run_sync(const Endpoint& source, const Endpoint& destination, const SyncOptions& options,
                 Observer& observer, base::Logger& logger, StopFlag& stop) {
  return run(source, destination, options, false, observer, logger, stop);
}

Summary run_verify(const Endpoint& left, const Endpoint& right, const SyncOptions& options,
                   Observer& observer, base::Logger& logger, StopFlag& stop) {
  return run(left, right, options, true, observer, logger, stop);
}

}  // namespace volferry
