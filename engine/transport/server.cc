// SPDX-License-Identifier: Apache-2.0
// The TLS server: one thread accepts, a thread for each handshake authenticates, `accept` hands out
// sessions. A later connection of a session proves by the join token that it comes from the same
// client.
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "engine/base/random.h"
#include "engine/transport/connect.h"
#include "engine/transport/internal/handshake.h"
#include "engine/transport/internal/tcp.h"
#include "engine/transport/internal/tls_context.h"
#include "engine/transport/internal/tls_link.h"

namespace volferry::transport {

namespace {

constexpr std::size_t kMaxWaitingSessions = 16;
constexpr std::chrono::milliseconds kAcceptPause{
    100};  // after accept(2) failed, for lack of descriptors say

// The live sessions that connections may join. Thread-safe; outlives the server, since channels
// may.
class SessionTable {
 public:
  // Makes a channel and enters it at once: its writer may answer, and the client may join, before
  // this returns.
  template <typename Make>
  std::unique_ptr<ChannelImpl> add(const SessionId& id, const JoinToken& token, Make make) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<ChannelImpl> channel = make();
    sessions_.insert_or_assign(id, Session{channel.get(), token});
    return channel;
  }
  void remove(const SessionId& id) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
  }
  // As ChannelImpl::add_link; kAuth where there is no such session or the token is wrong, without
  // telling which.
  Status join(const wire::Hello& hello, std::unique_ptr<Link>& link, const wire::HelloAck& ack) {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(hello.session_id);
    if (found == sessions_.end() ||
        CRYPTO_memcmp(found->second.token.data(), hello.join_token.data(), sizeof(JoinToken)) !=
            0) {
      return fail_with(Code::kAuth, "no session to join with this token");
    }
    return found->second.channel->add_link(link, ack.max_streams, wire::make_frame(ack));
  }

 private:
  struct Session {
    ChannelImpl* channel;  // removed before it is destroyed
    JoinToken token;
  };
  std::mutex mutex_;
  std::map<SessionId, Session> sessions_;
};

class TlsServer : public Server {
 public:
  TlsServer(const ServerOptions& options, std::unique_ptr<TlsContext> context,
            base::UniqueFd listener, std::string address)
      : options_(options),
        context_(std::move(context)),
        listener_(std::move(listener)),
        address_(std::move(address)),
        table_(std::make_shared<SessionTable>()),
        acceptor_([this] { accept_loop(); }) {}

  ~TlsServer() override {
    TlsServer::stop();
    acceptor_.join();
    for (Handshake& each : handshakes_) each.thread.join();
  }

  std::string address() const override { return address_; }

  Result<std::unique_ptr<Channel>> accept() override {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return stopping_.load() || !waiting_.empty(); });
    if (stopping_) return fail_with(Code::kCancelled, "the server has stopped");
    std::unique_ptr<Channel> channel = std::move(waiting_.front());
    waiting_.pop_front();
    return channel;
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_.set();
    arrived_.notify_all();
  }

 private:
  struct Handshake {
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void log(base::LogLevel level, const std::string& line) const {
    if (options_.channel.logger != nullptr) options_.channel.logger->log(level, line);
  }

  // The acceptor's own list: threads that are done are joined before the next one starts.
  void reap() {
    for (auto each = handshakes_.begin(); each != handshakes_.end();) {
      if (!each->done) {
        ++each;
        continue;
      }
      each->thread.join();
      each = handshakes_.erase(each);
    }
  }

  void accept_loop() {
    while (wait_for(listener_.get(), POLLIN, stop_, {})) {
      base::UniqueFd socket(
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      reap();
      if (!socket) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
        log(base::LogLevel::kWarn, fail_sys("accept").error().message());
        (void)wait_for(-1, 0, stop_, {.deadline = Clock::now() + kAcceptPause});
        continue;
      }
      if (handshakes_.size() >= options_.max_handshakes) {
        log(base::LogLevel::kWarn, "too many open handshakes: a connection was closed");
        continue;
      }
      Handshake& handshake = handshakes_.emplace_back();
      handshake.thread = std::thread([this, &handshake, fd = std::move(socket)]() mutable {
        serve(std::move(fd));
        handshake.done = true;
      });
    }
  }

  void serve(base::UniqueFd socket) {
    const std::string peer = remote_address(socket.get());
    if (const Status status = greet(std::move(socket), peer); !status) {
      log(base::LogLevel::kWarn, "refused " + peer + ": " + status.error().message());
    }
  }

  Status greet(base::UniqueFd socket, const std::string& peer) {
    const Wait wait{.deadline = Clock::now() + options_.handshake_timeout, .cancel = &stopping_};
    prepare_stream(socket.get());
    VF_ASSIGN(UniqueSsl ssl, context_->new_server());
    VF_ASSIGN(std::unique_ptr<Link> link,
              make_tls_link(std::move(socket), std::move(ssl), context_->psk(), peer, wait));
    const Result<wire::Hello> received = receive_hello(*link, wait);
    if (!received) {
      const Error& error = received.error();
      if (error.code == Code::kProtocol && options_.incompatible) options_.incompatible(error);
      return std::unexpected(error);
    }
    const wire::Hello& hello = *received;
    if (hello.stream != 0) {
      const wire::HelloAck ack = make_ack(options_.channel, hello.session_id);
      const Status joined = table_->join(hello, link, ack);
      if (!joined) return refuse(*link, joined.error(), wait);
      return {};
    }
    return open_session(std::move(link), hello, wait);
  }

  Status open_session(std::unique_ptr<Link> link, const wire::Hello& hello, const Wait& wait) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kMaxWaitingSessions) {
        return refuse(*link, {Code::kConnect, 0, "too many sessions are waiting"}, wait);
      }
    }
    SessionId id{};
    base::fill_random(id);
    VF_ASSIGN(const JoinToken token, link->join_token(id));
    // The answer is the writer's first frame, so that nothing can come before it.
    std::unique_ptr<ChannelImpl> channel = table_->add(id, token, [&] {
      return std::make_unique<ChannelImpl>(std::move(link), peer_info(hello), options_.channel,
                                           wire::make_frame(make_ack(options_.channel, id)));
    });
    channel->set_before_end([table = table_, id] { table->remove(id); });
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(channel));
    }
    arrived_.notify_one();
    return {};
  }

  const ServerOptions options_;
  const std::unique_ptr<TlsContext> context_;
  const base::UniqueFd listener_;
  const std::string address_;
  const std::shared_ptr<SessionTable> table_;
  StopEvent stop_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::unique_ptr<Channel>> waiting_;
  std::list<Handshake> handshakes_;  // the acceptor's
  std::thread acceptor_;             // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options) {
  VF_ASSIGN(std::unique_ptr<TlsContext> context, TlsContext::server(options));
  VF_ASSIGN(base::UniqueFd listener, listen_tcp(options.listen_host, options.port));
  VF_ASSIGN(std::string address, local_address(listener.get()));
  return std::make_unique<TlsServer>(options, std::move(context), std::move(listener),
                                     std::move(address));
}

}  // namespace volferry::transport
