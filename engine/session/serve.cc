// SPDX-License-Identifier: Apache-2.0
// The server's side: one session after the other or side by side, each for one client.
#include <algorithm>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/session/confine.h"
#include "engine/session/peer_observer.h"
#include "engine/session/remote_session.h"
#include "engine/sync.h"

namespace volferry {

namespace {

using namespace session;  // NOLINT(google-build-using-namespace): this file is that folder's face

// How long a session waits for one that is just ending to let go of the volume: a client that
// reconnects must not be refused because of its own lost connection.
constexpr auto kLockPatience = std::chrono::seconds(3);

Status check_allowed(const ServeOptions& options, const wire::Start& start) {
  const bool push = start.direction == wire::Direction::kPush;
  const bool verify = (start.flags & wire::kFlagVerifyOnly) != 0;
  if (push && !verify && !options.allow_push) {
    return fail_with(
        Code::kUsage,
        "this server is read-only; start it without --read-only to write to its volume");
  }
  if ((!push || verify) && !options.allow_pull) {
    return fail_with(Code::kUsage,
                     "this server is write-only; start it without --write-only to read its volume");
  }
  const bool dry_run = (start.flags & wire::kFlagDryRun) != 0;
  if (options.whole_pushes && (dry_run || !start.subpath.empty())) {
    return fail_with(Code::kUsage,
                     "this server takes whole volumes only: no sub-path, and no dry run");
  }
  return {};
}

Summary serve_session(std::unique_ptr<transport::Channel> owned, Runtime& runtime,
                      const ServeOptions& serve, Observer& observer, base::Logger& logger,
                      StopFlag& stop) {
  transport::Channel& channel = *owned;
  PeerObserver peer(channel, observer);
  Tally tally(peer);
  const auto begin = std::chrono::steady_clock::now();
  Conversation conversation(channel, tally);
  {
    Monitor monitor(
        tally, stop,
        [&](const Error& error) {
          runtime.work_pool->cancel();
          channel.abort(error);
        },
        [&](ProgressSnapshot::Phase phase) {
          count_wire(tally, channel);
          tally.progress(phase);
        });
    channel.start(conversation);
    const auto talk = [&]() -> Status {
      PeerTrust trust = PeerTrust::kTimes;
      if (serve.limits.check_peer) {
        VF_ASSIGN(trust, serve.limits.check_peer(channel.peer_identity()));
      }
      VF_ASSIGN(wire::Start start, conversation.wait_start());
      VF_TRY(check_allowed(serve, start));
      const std::uint64_t own = serve.limits.bandwidth_limit;
      if (own == 0 || (start.bandwidth_limit != 0 && start.bandwidth_limit < own)) {
        channel.limit_bandwidth(start.bandwidth_limit);
      }
      VolumeOptions options = volume_options(start);
      options.durable = options.durable && serve.limits.durable;
      options.checksum |= trust == PeerTrust::kContentOnly;
      options.keep_root = serve.keep_root;
      options.spare_capabilities = serve.spare_capabilities;
      const bool push = start.direction == wire::Direction::kPush;
      Volume volume;
      if (!push || options.verify_only) {
        VF_ASSIGN(volume, open_source(serve.root, start.subpath));
      } else {
        VF_ASSIGN(volume, open_destination(serve.root, start.subpath));
      }
      base::UniqueFd lock;
      if (push) {
        VF_TRY(check_pairing(start.root_kind, volume.kind, options.verify_only));
        if (!options.read_only()) {
          VF_TRY(create_destination(volume, start.root_kind));
          VF_ASSIGN(lock, lock_destination(volume, kLockPatience));
        }
      } else {
        VF_TRY(check_pairing(volume.kind, start.root_kind, options.verify_only));
      }
      logger.log(base::LogLevel::kInfo,
                 std::string("session begins direction=") + (push ? "push" : "pull"));
      VF_TRY(channel.send(wire::make_frame(wire::StartAck{volume.kind, volume.size})));
      const RemoteSession session{channel, conversation, runtime, tally,
                                  monitor, start,        options, serve.limits.direct};
      return push ? run_receiver(session, volume, start.root_kind)
                  : run_sender(session, volume, false);
    };
    Status done = talk();
    if (!done) tally.fail(done.error());
    if (done && !tally.stopped()) {
      (void)channel.finish(std::chrono::seconds(10));
    } else {
      channel.abort(*tally.fatal());
    }
  }
  runtime.workers->stop();
  Summary summary = tally.summary();
  summary.io = runtime.io_name();
  summary.peak_buffers = runtime.peak_buffers();
  const transport::ChannelStats stats = channel.stats();
  // Its readers call the conversation until they have ended.
  owned.reset();
  summary.wire_sent = stats.wire_sent;
  summary.wire_received = stats.wire_received;
  summary.streams = stats.streams;
  summary.elapsed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (summary.fatal) {
    logger.log(base::LogLevel::kWarn, "session failed: " + summary.fatal->message());
  } else {
    logger.log(base::LogLevel::kInfo,
               "session ends exit_code=" + std::to_string(summary.exit_code()));
  }
  return summary;
}

Status confine(const ServeOptions& options, base::Logger& logger) {
  if (!options.confine) return {};
  auto confined = confine_to(options.root, options.allow_push);
  if (!confined) return std::unexpected(confined.error());
  logger.log(base::LogLevel::kInfo,
             *confined ? "confined to the root by landlock" : "no landlock in this kernel");
  return {};
}

// Sessions that run beside each other, each on its thread.
class Sessions {
 public:
  ~Sessions() { join(true); }
  template <typename Work>
  void start(Work work) {
    join(false);
    auto& entry = entries_.emplace_back();
    entry.thread = std::thread([&entry, work = std::move(work)]() mutable {
      work();
      entry.over.store(true);
    });
  }
  void join(bool all) {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (all || it->over.load()) {
        it->thread.join();
        it = entries_.erase(it);
      } else {
        ++it;
      }
    }
  }

 private:
  struct Entry {
    std::thread thread;
    std::atomic<bool> over{false};
  };
  std::list<Entry> entries_;
};

}  // namespace

Result<bool> confine_process(const std::string& root, bool writable,
                             const std::vector<std::string>& readable) {
  return confine_to(root, writable, readable);
}

int run_serve(transport::Server& server, const ServeOptions& options, Observer& observer,
              base::Logger& logger, StopFlag& stop, Summary* summary_of_last) {
  if (auto confined = confine(options, logger); !confined) {
    logger.log(base::LogLevel::kError, confined.error().message());
    return exit_code(Code::kInternal);
  }
  std::atomic<bool> watching{true};
  std::thread watcher([&] {
    while (watching.load() && stop.load() == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (stop.load() != 0) server.stop();
  });
  int result = 0;
  {
    Sessions sessions;
    std::mutex last_mutex;
    for (;;) {
      auto channel = server.accept();
      if (!channel) {
        result = stop.load() != 0 || channel.error().code == Code::kCancelled
                     ? 0
                     : exit_code(channel.error().code);
        if (result != 0) logger.log(base::LogLevel::kError, channel.error().message());
        break;
      }
      auto work = [&, channel = std::move(*channel)]() mutable {
        Summary summary;
        if (auto runtime = Runtime::create(options.limits, false, logger)) {
          summary = serve_session(std::move(channel), *runtime, options, observer, logger, stop);
        } else {
          channel->abort(runtime.error());
          summary.fatal = runtime.error();
        }
        const std::lock_guard lock(last_mutex);
        if (summary_of_last != nullptr) *summary_of_last = summary;
        if (options.once) result = summary.exit_code();
      };
      if (options.once) {
        work();
        break;
      }
      sessions.start(std::move(work));
    }
  }
  watching.store(false);
  watcher.join();
  return result;
}

int run_serve_stdio(base::UniqueFd in, base::UniqueFd out, const ServeOptions& options,
                    Observer& observer, base::Logger& logger, StopFlag& stop) {
  if (auto confined = confine(options, logger); !confined) {
    logger.log(base::LogLevel::kError, confined.error().message());
    return exit_code(Code::kInternal);
  }
  auto runtime = Runtime::create(options.limits, true, logger);
  if (!runtime) {
    logger.log(base::LogLevel::kError, runtime.error().message());
    return exit_code(runtime.error().code);
  }
  transport::ChannelOptions channel_options;
  channel_options.logger = &logger;
  channel_options.list_credit = runtime->list_credit;
  channel_options.data_credit = runtime->data_credit;
  channel_options.receive_pool = runtime->receive_pool.get();
  channel_options.bandwidth_limit = options.limits.bandwidth_limit;
  channel_options.idle_timeout = options.limits.timeout;
  auto channel = transport::stdio_server(std::move(in), std::move(out), channel_options);
  if (!channel) {
    logger.log(base::LogLevel::kError, channel.error().message());
    return exit_code(channel.error().code);
  }
  return serve_session(*std::move(channel), *runtime, options, observer, logger, stop).exit_code();
}

}  // namespace volferry
