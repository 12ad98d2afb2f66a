// SPDX-License-Identifier: Apache-2.0
// TLS over a socket, for one reading and one writing thread on the same SSL object.
//
// OpenSSL wants one thread at a time in an SSL object, so a mutex guards it, held only for calls
// that cannot wait: a slice of at most kSlice bytes to encrypt or decrypt. Encrypted records do not
// go to the socket one by one, but by way of a BIO into a buffer, which the writing thread takes
// out under the lock and sends without it, in one send(2) for four records. The reading side
// gets its large recv(2) from OpenSSL's own read-ahead.
#include "engine/transport/internal/tls_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "engine/base/check.h"
#include "engine/transport/internal/tls_error.h"

namespace volferry::transport {

namespace {

// Four records: what is encrypted is still in the L2 cache when it is sent. CPU time of both ends
// on loopback, 1 GiB in frames of 1 MiB, 2 busy cores: 1.14 s with 64 KiB, 1.24 s with 128 or 256
// KiB.
constexpr std::size_t kSlice = 64 << 10;
constexpr std::chrono::milliseconds kLinger{500};
constexpr std::size_t kMaxLingerBytes = 64 << 10;
constexpr char kJoinLabel[] = "EXPORTER-volferry-join";

using Outbox = std::vector<std::uint8_t>;

int outbox_write(BIO* bio, const char* bytes, std::size_t length, std::size_t* written) {
  auto* outbox = static_cast<Outbox*>(BIO_get_data(bio));
  const auto* records = reinterpret_cast<const std::uint8_t*>(bytes);  // of one type: a memcpy
  outbox->insert(outbox->end(), records, records + length);
  *written = length;
  return 1;
}

long outbox_control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

struct FreeMethod {
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};
using UniqueMethod = std::unique_ptr<BIO_METHOD, FreeMethod>;

UniqueMethod outbox_method() {
  UniqueMethod method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "outbox"));
  VF_CHECK(method != nullptr, "out of memory");
  BIO_meth_set_write_ex(method.get(), outbox_write);
  BIO_meth_set_ctrl(method.get(), outbox_control);
  return method;
}

class TlsLink : public Link {
 public:
  TlsLink(base::UniqueFd socket, UniqueSsl ssl, bool psk, std::string peer,
          std::uint64_t key_update_bytes)
      : socket_(std::move(socket)),
        method_(outbox_method()),
        ssl_(std::move(ssl)),
        psk_(psk),
        peer_(std::move(peer)),
        key_update_bytes_(key_update_bytes) {
    BIO* outbox = BIO_new(method_.get());
    VF_CHECK(outbox != nullptr, "out of memory");
    BIO_set_data(outbox, &outbox_);
    BIO_set_init(outbox, 1);
    SSL_set0_wbio(ssl_.get(), outbox);
    BIO* inbox = BIO_new_socket(socket_.get(), BIO_NOCLOSE);
    VF_CHECK(inbox != nullptr, "out of memory");
    SSL_set0_rbio(ssl_.get(), inbox);
  }

  Status handshake(const Wait& wait) {
    for (;;) {
      ERR_clear_error();
      const int done = SSL_do_handshake(ssl_.get());
      const int error = SSL_get_error(ssl_.get(), done);
      Status status;
      if (done != 1 && error != SSL_ERROR_WANT_READ) status = handshake_error(error);
      // Also after a failure: the alert tells the peer.
      const Status flushed = flush(wait);
      if (!status) linger();
      VF_TRY(std::move(status));
      VF_TRY(flushed);
      if (done == 1) return check_peer();
      VF_TRY(wait_for(socket_.get(), POLLIN, stop_event(), wait));
    }
  }

  Result<std::size_t> read(base::MutBytes out, const Wait& wait) override {
    const base::MutBytes slice = out.first(std::min(out.size(), kSlice));
    for (;;) {
      VF_ASSIGN(const ReadStep step, read_step(slice));
      if (step.got > 0 || step.end) return step.got;
      VF_TRY(wait_for(socket_.get(), POLLIN, stop_event(), wait));
    }
  }

  Status write(std::span<const base::Bytes> pieces, const Wait& wait) override {
    for (base::Bytes piece : pieces) {
      while (!piece.empty()) {
        const base::Bytes slice = piece.first(std::min(piece.size(), kSlice));
        VF_ASSIGN(const std::size_t waiting, encrypt(slice));
        piece = piece.subspan(slice.size());
        if (waiting >= kSlice) VF_TRY(flush(wait));
      }
    }
    return flush(wait);
  }

  void end_writing() override {
    {
      const std::lock_guard lock(mutex_);
      ERR_clear_error();
      (void)SSL_shutdown(ssl_.get());
    }
    (void)flush({.deadline = Clock::now()});
    ::shutdown(socket_.get(), SHUT_WR);
  }

  bool has_integrity() const override { return true; }

  Result<JoinToken> join_token(const SessionId& session) override {
    const std::lock_guard lock(mutex_);
    ERR_clear_error();
    JoinToken token{};
    if (SSL_export_keying_material(ssl_.get(), token.data(), token.size(), kJoinLabel,
                                   sizeof kJoinLabel - 1, session.data(), session.size(), 1) != 1) {
      return tls_setup_error("key export");
    }
    return token;
  }

  std::optional<std::chrono::microseconds> round_trip() const override {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
    return std::chrono::microseconds(info.tcpi_rtt);
  }

 private:
  struct ReadStep {
    std::size_t got = 0;
    bool end = false;
  };

  // Closing a socket with unread bytes resets the connection, which could destroy our alert on its
  // way.
  void linger() {
    ::shutdown(socket_.get(), SHUT_WR);
    const Wait wait{.deadline = Clock::now() + kLinger};
    std::uint8_t dropped[4096];
    for (std::size_t total = 0; total < kMaxLingerBytes;) {
      const ssize_t got = ::recv(socket_.get(), dropped, sizeof dropped, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
      if (got > 0) total += static_cast<std::size_t>(got);
      if (got < 0 && !wait_for(socket_.get(), POLLIN, stop_event(), wait)) return;
    }
  }

  // With a PSK, only a handshake that used it counts.
  Status check_peer() {
    if (psk_ && SSL_session_reused(ssl_.get()) != 1) {
      return fail_with(Code::kAuth, "TLS with " + peer_ + ": the peer did not use the key");
    }
    return {};
  }

  Status handshake_error(int error) {
    const std::string what = "TLS with " + peer_;
    if (error == SSL_ERROR_SSL) {
      Error mapped = tls_error(ssl_.get(), what, psk_);
      if (mapped.code == Code::kConnectionLost) mapped.code = Code::kConnect;
      return std::unexpected(std::move(mapped));
    }
    if (error == SSL_ERROR_SYSCALL && errno != 0) return fail_with(Code::kConnect, what, errno);
    return fail_with(Code::kConnect, what + ": the peer closed the connection in the handshake",
                     ECONNRESET);
  }

  // Decrypts what has arrived, as much as fits, without waiting.
  Result<ReadStep> read_step(base::MutBytes out) {
    const std::lock_guard lock(mutex_);
    Result<ReadStep> step = decrypt(out);
    const std::uint64_t total = BIO_number_read(SSL_get_rbio(ssl_.get()));
    count_received(total - wire_received_);
    wire_received_ = total;
    return step;
  }

  Result<ReadStep> decrypt(base::MutBytes out) {
    ReadStep step;
    while (step.got < out.size()) {
      ERR_clear_error();
      errno = 0;
      std::size_t got = 0;
      const int done = SSL_read_ex(ssl_.get(), out.data() + step.got, out.size() - step.got, &got);
      if (done == 1) {
        step.got += got;
        continue;
      }
      if (step.got > 0) break;  // what stopped us will be met again
      switch (SSL_get_error(ssl_.get(), done)) {
        case SSL_ERROR_WANT_READ:
          return step;
        case SSL_ERROR_ZERO_RETURN:
          step.end = true;
          return step;
        case SSL_ERROR_SYSCALL:
          if (errno != 0) return fail_with(Code::kConnectionLost, "read from " + peer_, errno);
          step.end = true;
          return step;
        default:
          return std::unexpected(tls_error(ssl_.get(), "read from " + peer_, psk_));
      }
    }
    return step;
  }

  // Puts records for all of `plain` into the outbox; returns how many bytes wait there.
  Result<std::size_t> encrypt(base::Bytes plain) {
    const std::lock_guard lock(mutex_);
    ERR_clear_error();
    if (plain_sent_ >= key_update_bytes_) {
      plain_sent_ = 0;
      if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
        return tls_setup_error("key update");
      }
    }
    plain_sent_ += plain.size();
    while (!plain.empty()) {
      std::size_t put = 0;
      if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &put) != 1) {
        return std::unexpected(tls_error(ssl_.get(), "write to " + peer_, psk_));
      }
      plain = plain.subspan(put);
    }
    return outbox_.size();
  }

  // Sends the outbox. Writing thread only.
  Status flush(const Wait& wait) {
    sending_.clear();
    {
      const std::lock_guard lock(mutex_);
      sending_.swap(outbox_);
    }
    base::Bytes rest(sending_);
    while (!rest.empty()) {
      const ssize_t put = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (put >= 0) {
        count_sent(static_cast<std::size_t>(put));
        rest = rest.subspan(static_cast<std::size_t>(put));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail_with(Code::kConnectionLost, "write to " + peer_, errno);
      VF_TRY(wait_for(socket_.get(), POLLOUT, stop_event(), wait));
    }
    return {};
  }

  const base::UniqueFd socket_;
  const UniqueMethod method_;
  std::mutex mutex_;  // guards ssl_, outbox_, plain_sent_, wire_received_
  const UniqueSsl ssl_;
  Outbox outbox_;
  Outbox sending_;  // the writing thread's
  const bool psk_;
  const std::string peer_;
  const std::uint64_t key_update_bytes_;
  std::uint64_t plain_sent_ = 0;
  std::uint64_t wire_received_ = 0;
};

}  // namespace

Result<std::unique_ptr<Link>> make_tls_link(base::UniqueFd socket, UniqueSsl ssl, bool psk,
                                            std::string peer, const Wait& wait,
                                            std::uint64_t key_update_bytes) {
  auto link = std::make_unique<TlsLink>(std::move(socket), std::move(ssl), psk, std::move(peer),
                                        key_update_bytes);
  VF_TRY(link->handshake(wait));
  return link;
}

}  // namespace volferry::transport
