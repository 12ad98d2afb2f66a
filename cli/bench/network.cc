// SPDX-License-Identifier: Apache-2.0
// TLS over the loopback interface with the engine's own server and client, beside plain TCP and the
// bare cipher.
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/bench/measure.h"

#include "engine/base/buffer.h"
#include "engine/base/random.h"
#include "engine/base/unique_fd.h"
#include "engine/transport/connect.h"

namespace volferry::cli::bench {

namespace {

constexpr std::size_t kPiece = 1u << 20;
constexpr std::uint64_t kPassBytes = 64u << 20;
constexpr unsigned kSendSlots = 16;
constexpr std::chrono::seconds kPatience{5};

// ---- limits

// One direction of a TCP connection to ourselves, a thread at each end.
struct TcpPair {
  base::UniqueFd sender;
  base::UniqueFd receiver;
};
Result<TcpPair> tcp_pair() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const base::UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0)
    return fail_sys("listen on 127.0.0.1");
  TcpPair pair;
  pair.sender.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!pair.sender || connect(pair.sender.get(), generic, length) != 0)
    return fail_sys("connect to 127.0.0.1");
  pair.receiver.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.receiver) return fail_sys("accept on 127.0.0.1");
  return pair;
}

double plain_tcp(Context& context) {
  auto pair = tcp_pair();
  if (!pair) return 0;
  const std::vector<std::uint8_t> data = random_data(kPiece, 13);
  std::jthread reader([fd = pair->receiver.get()] {
    std::vector<std::uint8_t> sink(kPiece);
    while (recv(fd, sink.data(), sink.size(), 0) > 0) {
    }
  });
  const double rate = measure(context, [&]() -> std::uint64_t {
    for (std::uint64_t sent = 0; sent < kPassBytes;) {
      const ssize_t part = send(pair->sender.get(), data.data(), data.size(), MSG_NOSIGNAL);
      if (part <= 0) return 0;
      sent += static_cast<std::uint64_t>(part);
    }
    return kPassBytes;
  });
  pair->sender.reset();
  return rate;
}

struct CipherFree {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

// AES-128-GCM over TLS-sized records, one core.
double bare_cipher(Context& context) {
  const std::unique_ptr<EVP_CIPHER_CTX, CipherFree> cipher(EVP_CIPHER_CTX_new());
  const std::uint8_t key[16] = {1};
  const std::uint8_t nonce[12] = {2};
  constexpr int kRecord = 16384;
  std::vector<std::uint8_t> data = random_data(kPiece, 17);
  return measure(context, [&]() -> std::uint64_t {
    for (std::uint64_t done = 0; done < kPassBytes; done += kRecord) {
      std::uint8_t* record = data.data() + done % kPiece;
      int length = 0;
      if (EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_gcm(), nullptr, key, nonce) != 1 ||
          EVP_EncryptUpdate(cipher.get(), record, &length, record, kRecord) != 1)
        return 0;
    }
    return kPassBytes;
  });
}

// ---- the engine's channel

// Takes every frame, gives its credit back at once and counts.
class Sink : public transport::ChannelHandler {
 public:
  explicit Sink(transport::Channel& channel) : channel_(channel) {}
  void on_frame(wire::Frame frame) override {
    const std::uint64_t bytes = frame.body.size();
    const std::uint64_t charge = frame.charge();
    frame.body = {};
    channel_.consumed(wire::frame_class(frame.type), charge);
    const std::lock_guard lock(mutex_);
    received_ += bytes;
    changed_.notify_all();
  }
  void on_closed(Status /*reason*/) override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // False if the channel ended before that many bytes had come.
  bool wait_for_bytes(std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return received_ >= bytes || closed_; });
    return received_ >= bytes;
  }

 private:
  transport::Channel& channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t received_ = 0;
  bool closed_ = false;
};

Result<std::uint16_t> port_of(const std::string& address) {
  const std::string_view digits = std::string_view(address).substr(address.rfind(':') + 1);
  std::uint16_t port = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), port).ec != std::errc{})
    return fail_with(Code::kInternal, "bench: no port in " + address);
  return port;
}

// Both ends of a session in this process, with a key made for it.
class Loopback {
 public:
  static Result<std::unique_ptr<Loopback>> open(Context& context, unsigned streams) {
    std::unique_ptr<Loopback> self(new Loopback);
    transport::ChannelOptions channel;
    channel.logger = &context.logger;
    channel.streams = streams;
    const auto slots = static_cast<unsigned>(channel.data_credit / kPiece) + streams;
    VF_ASSIGN(self->send_pool_, base::BufferPool::create(kSendSlots, kPiece));
    VF_ASSIGN(self->client_pool_, base::BufferPool::create(slots, kPiece));
    VF_ASSIGN(self->server_pool_, base::BufferPool::create(slots, kPiece));

    std::vector<std::uint8_t> key(32);
    base::fill_random(key);
    transport::ServerOptions server;
    server.listen_host = "127.0.0.1";
    server.port = 0;
    server.psk = {{"bench", key}};
    server.channel = channel;
    server.channel.receive_pool = self->server_pool_.get();
    VF_ASSIGN(self->server_, transport::Server::create(server));
    VF_ASSIGN(const std::uint16_t port, port_of(self->server_->address()));

    Result<std::unique_ptr<transport::Channel>> accepted = nullptr;
    std::jthread acceptor([&] { accepted = self->server_->accept(); });
    transport::TlsCredentials credentials;
    credentials.psk_identity = "bench";
    credentials.psk = key;
    channel.receive_pool = self->client_pool_.get();
    const std::atomic<bool> cancel{false};
    auto connected = transport::connect_tls({"127.0.0.1", port}, credentials, channel, cancel);
    if (!connected) self->server_->stop();
    acceptor.join();
    if (!connected) return std::unexpected(std::move(connected).error());
    if (!accepted) return std::unexpected(std::move(accepted).error());
    self->client_ = *std::move(connected);
    self->far_ = *std::move(accepted);
    self->start();
    return self;
  }

  ~Loopback() {
    if (client_) (void)client_->finish(kPatience);
    if (far_) (void)far_->finish(kPatience);
    if (server_) server_->stop();
  }

  // Sends that much and waits until the far end has it all; 0 after an error.
  std::uint64_t pass(std::uint64_t bytes) {
    for (std::uint64_t sent = 0; sent < bytes; sent += kPiece) {
      auto body = send_pool_->acquire();
      if (!body) return 0;
      body->set_size(kPiece);
      wire::Frame frame;
      frame.type = wire::MessageType::kRangeData;
      frame.body = *std::move(body);
      if (!client_->send(std::move(frame))) return 0;
    }
    total_ += bytes;
    return far_sink_->wait_for_bytes(total_) ? bytes : 0;
  }

 private:
  Loopback() = default;
  void start() {
    client_sink_ = std::make_unique<Sink>(*client_);
    far_sink_ = std::make_unique<Sink>(*far_);
    client_->start(*client_sink_);
    far_->start(*far_sink_);
  }

  // Destroyed from the last to the first: channels before sinks before pools.
  std::unique_ptr<base::BufferPool> send_pool_;
  std::unique_ptr<base::BufferPool> client_pool_;
  std::unique_ptr<base::BufferPool> server_pool_;
  std::unique_ptr<transport::Server> server_;
  std::unique_ptr<Sink> client_sink_;
  std::unique_ptr<Sink> far_sink_;
  std::unique_ptr<transport::Channel> client_;
  std::unique_ptr<transport::Channel> far_;
  std::uint64_t total_ = 0;
};

void bench_tls(Context& context, unsigned streams, double tcp, double cipher) {
  Row row = {.name = fmt::format("loopback TLS, {} stream{}", streams, streams == 1 ? "" : "s"),
             .unit = "bytes",
             .limit = tcp,
             .limit_name = "loopback TCP, 1 stream",
             .note = fmt::format("AES-128-GCM alone {:.1f} GB/s", cipher / 1e9)};
  if (context.stopped()) return;
  auto loopback = Loopback::open(context, streams);
  if (loopback)
    row.rate = measure(context, [&] { return (*loopback)->pass(kPassBytes); });
  else
    row.note = loopback.error().message();
  context.rows.push_back(std::move(row));
}

}  // namespace

void bench_network(Context& context) {
  const double tcp = plain_tcp(context);
  const double cipher = bare_cipher(context);
  bench_tls(context, 1, tcp, cipher);
  bench_tls(context, std::clamp(std::thread::hardware_concurrency(), 2u, 8u), tcp, cipher);
}

}  // namespace volferry::cli::bench
