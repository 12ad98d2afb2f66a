// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>
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

class TlsClient {
 public:
  TlsClient(const TlsTarget& target, const TlsContext& context, const ChannelOptions& options,
            const std::atomic<bool>& cancel)
      : target_(target), context_(context), options_(options), cancel_(cancel) {}

  Result<std::unique_ptr<Channel>> connect() {
    const Wait wait = make_wait();
    VF_ASSIGN(std::unique_ptr<Link> first, open_link(wait));
    Result<wire::HelloAck> ack = hello_first(*first, options_, wait);
    if (!ack) return std::unexpected(as_connect_error(std::move(ack).error()));
    VF_ASSIGN(const JoinToken token, first->join_token(ack->session_id));
    auto channel = std::make_unique<ChannelImpl>(std::move(first), peer_info(*ack), options_);
    VF_TRY(join_all(*channel, *ack, token));
    return channel;
  }

 private:
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

  Status join_one(ChannelImpl& channel, const wire::HelloAck& first, const JoinToken& token,
                  std::uint32_t stream) const {
    const Wait wait = make_wait();
    VF_ASSIGN(std::unique_ptr<Link> link, open_link(wait));
    if (Status status = hello_join(*link, first, token, stream, wait); !status) {
      return std::unexpected(as_connect_error(std::move(status).error()));
    }
    return channel.add_link(link, kMaxStreams, std::nullopt);
  }

  // All at once: over a long link each costs three round trips.
  Status join_all(ChannelImpl& channel, const wire::HelloAck& first, const JoinToken& token) const {
    const unsigned streams = std::min({options_.streams, first.max_streams, kMaxStreams});
    if (streams <= 1) return {};
    std::vector<Status> results(streams - 1);
    {
      std::vector<std::jthread> joining;
      for (unsigned stream = 1; stream < streams; ++stream) {
        joining.emplace_back(
            [&, stream] { results[stream - 1] = join_one(channel, first, token, stream); });
      }
    }
    // A session works with fewer connections. It may also be over before they have joined it,
    // because the server refuses our identity, say: the first connection tells the reason, these
    // could only say that there is nothing to join.
    for (const Status& result : results) {
      if (result) continue;
      if (result.error().code == Code::kCancelled && cancel_) return result;
      if (options_.logger != nullptr)
        options_.logger->log(base::LogLevel::kInfo,
                             "one connection less: " + result.error().message());
    }
    return {};
  }

  const TlsTarget& target_;
  const TlsContext& context_;
  const ChannelOptions& options_;
  const std::atomic<bool>& cancel_;
};

}  // namespace

Result<std::unique_ptr<Channel>> connect_tls(const TlsTarget& target,
                                             const TlsCredentials& credentials,
                                             const ChannelOptions& options,
                                             const std::atomic<bool>& cancel) {
  VF_ASSIGN(const std::unique_ptr<TlsContext> context, TlsContext::client(credentials));
  return TlsClient(target, *context, options, cancel).connect();
}

}  // namespace volferry::transport
