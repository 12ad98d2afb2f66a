// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/transport/connect.h"
#include "engine/transport/internal/handshake.h"
#include "engine/transport/internal/tcp.h"
#include "engine/transport/internal/tls_context.h"
#include "engine/transport/internal/tls_link.h"

namespace volferry::transport {

namespace {

// Against a server that announces more than anyone needs.
constexpr unsigned kMaxStreams = 64;

// How long a connection that is in the middle of joining a session may hold up the session's end.
constexpr std::chrono::seconds kJoinPatience{5};

using Patience = std::atomic<Clock::time_point>;

// Opens connections to one server.
class Connector {
 public:
  // References outlive it.
  Connector(const TlsTarget& target, const TlsContext& context, const ChannelOptions& options,
            const std::atomic<bool>& cancel)
      : target_(target), context_(context), options_(options), cancel_(cancel) {}

  Wait make_wait() const {
    Wait wait{.cancel = &cancel_};
    if (options_.connect_timeout.count() > 0) {
      wait.deadline = Clock::now() + options_.connect_timeout;
    }
    return wait;
  }

  // Before the session is up a lost connection means that there never was one.
  Error as_connect_error(Error error) const {
    if (error.code == Code::kTimeout || error.code == Code::kConnectionLost ||
        error.code == Code::kSystem) {
      error.code = Code::kConnect;
      error.context = "connect to " + host_port(target_.host, target_.port) + ": " + error.context;
    }
    return error;
  }

  Result<std::unique_ptr<Link>> open_link(const Wait& wait) const {
    const StopEvent never;
    VF_ASSIGN(base::UniqueFd socket, connect_tcp(target_.host, target_.port, never, wait));
    VF_ASSIGN(UniqueSsl ssl, context_.new_client(target_.host));
    Result<std::unique_ptr<Link>> link =
        make_tls_link(std::move(socket), std::move(ssl), context_.psk(),
                      host_port(target_.host, target_.port), wait);
    if (!link) return std::unexpected(as_connect_error(std::move(link).error()));
    return link;
  }

  // Adds the connections from number `from` on. All at once: over a long link each costs three
  // round trips. A session works with fewer connections. It may also be over before they have
  // joined it, because the server refuses our identity, say: the first connection tells the reason,
  // these could only say that there is nothing to join. kCancelled where that ended it. A
  // connection that has asked to join goes on until `patience`, if there is one, whatever `cancel`
  // says.
  Status join(ChannelImpl& channel, const wire::HelloAck& first, const JoinToken& token,
              unsigned from, unsigned streams, const Patience* patience = nullptr) const {
    streams = std::min({streams, first.max_streams, kMaxStreams});
    if (streams <= from) return {};
    std::vector<Status> results(streams - from);
    {
      std::vector<std::jthread> joining;
      for (unsigned i = 0; i < results.size(); ++i) {
        joining.emplace_back(
            [&, i] { results[i] = join_one(channel, first, token, from + i, patience); });
      }
    }
    for (const Status& result : results) {
      if (result) continue;
      if (result.error().code == Code::kCancelled && cancel_) return result;
      if (options_.logger != nullptr)
        options_.logger->log(base::LogLevel::kInfo,
                             "one connection less: " + result.error().message());
    }
    return {};
  }

 private:
  Status join_one(ChannelImpl& channel, const wire::HelloAck& first, const JoinToken& token,
                  std::uint32_t stream, const Patience* patience) const {
    Wait wait = make_wait();
    VF_ASSIGN(std::unique_ptr<Link> link, open_link(wait));
    // From the question on the peer counts this connection: cut now, it would be a lost one.
    if (patience != nullptr) {
      if (cancel_) return fail_with(Code::kCancelled, "the session has ended");
      wait.cancel = nullptr;
      wait.moving_deadline = patience;
    }
    if (Status status = hello_join(*link, first, token, stream, wait); !status) {
      return std::unexpected(as_connect_error(std::move(status).error()));
    }
    Status added = channel.add_link(link, kMaxStreams, std::nullopt);
    if (!added) say_goodbye(*link, wait);
    return added;
  }

  const TlsTarget& target_;
  const TlsContext& context_;
  const ChannelOptions& options_;
  const std::atomic<bool>& cancel_;
};

// Adds connections to a session that has become busy, on a thread of its own. Thread-safe.
class LateJoiner {
 public:
  LateJoiner(const TlsTarget& target, std::unique_ptr<TlsContext> context,
             const ChannelOptions& options, const wire::HelloAck& ack, const JoinToken& token)
      : target_(target),
        context_(std::move(context)),
        options_(options),
        ack_(ack),
        token_(token),
        connector_(target_, *context_, options_, cancel_) {}
  ~LateJoiner() { end(); }
  LateJoiner(const LateJoiner&) = delete;
  LateJoiner& operator=(const LateJoiner&) = delete;

  void begin(ChannelImpl& channel) {
    const std::lock_guard lock(mutex_);
    if (cancel_) return;
    thread_ = std::thread([this, &channel] {
      (void)connector_.join(channel, ack_, token_, options_.streams, options_.busy_streams,
                            &patience_);
    });
  }

  // No connection is added after this.
  void end() {
    const std::lock_guard lock(mutex_);
    patience_ = Clock::now() + kJoinPatience;
    cancel_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  const TlsTarget target_;
  const std::unique_ptr<TlsContext> context_;
  const ChannelOptions options_;
  const wire::HelloAck ack_;
  const JoinToken token_;
  std::atomic<bool> cancel_{false};
  Patience patience_{Clock::time_point::max()};
  const Connector connector_;
  std::mutex mutex_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Channel>> connect_tls(const TlsTarget& target,
                                             const TlsCredentials& credentials,
                                             const ChannelOptions& options,
                                             const std::atomic<bool>& cancel) {
  VF_ASSIGN(std::unique_ptr<TlsContext> context, TlsContext::client(credentials));
  const Connector connector(target, *context, options, cancel);
  const Wait wait = connector.make_wait();
  VF_ASSIGN(std::unique_ptr<Link> first, connector.open_link(wait));
  Result<wire::HelloAck> ack = hello_first(*first, options, wait);
  if (!ack) return std::unexpected(connector.as_connect_error(std::move(ack).error()));
  VF_ASSIGN(const JoinToken token, first->join_token(ack->session_id));
  auto channel = std::make_unique<ChannelImpl>(std::move(first), peer_info(*ack), options);
  VF_TRY(connector.join(*channel, *ack, token, 1, options.streams));
  if (options.busy_streams > options.streams) {
    auto later = std::make_shared<LateJoiner>(target, std::move(context), options, *ack, token);
    channel->set_before_end([later] { later->end(); });
    channel->set_when_busy([later, &channel = *channel] { later->begin(channel); });
  }
  return channel;
}

}  // namespace volferry::transport
