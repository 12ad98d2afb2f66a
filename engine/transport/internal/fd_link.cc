// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/fd_link.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace volferry::transport {

namespace {

constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kMaxPieces = 64;
static_assert(kMaxPieces <= IOV_MAX);

// Keeps a write to a broken pipe from killing the process: pipes have no MSG_NOSIGNAL. The signal
// goes to the thread that wrote, so blocking it here and taking it back is enough.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    if (raised_ && sigismember(&before_, SIGPIPE) == 0) {
      const timespec now{};
      ::sigtimedwait(&pipe_, nullptr, &now);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  void raised() { raised_ = true; }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool raised_ = false;
};

bool is_socket(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

// Drops `count` bytes from the front of the pieces.
void advance(std::vector<iovec>& pieces, std::size_t& first, std::size_t count) {
  while (count > 0) {
    iovec& piece = pieces[first];
    const std::size_t taken = std::min(count, piece.iov_len);
    piece.iov_base = static_cast<std::uint8_t*>(piece.iov_base) + taken;
    piece.iov_len -= taken;
    count -= taken;
    if (piece.iov_len == 0) ++first;
  }
}

class FdLink : public Link {
 public:
  FdLink(base::UniqueFd in, base::UniqueFd out, std::shared_ptr<void> companion)
      : companion_(std::move(companion)),
        in_(std::move(in)),
        out_(std::move(out)),
        socket_(is_socket(out_.get())) {}

  ~FdLink() override {
    if (in_ && in_flags_ >= 0) (void)::fcntl(in_.get(), F_SETFL, in_flags_);
    if (out_ && out_flags_ >= 0) (void)::fcntl(out_.get(), F_SETFL, out_flags_);
  }

  Status prepare() {
    VF_ASSIGN(in_flags_, make_non_blocking(in_.get()));
    VF_ASSIGN(out_flags_, make_non_blocking(out_.get()));
    // Best effort: 64 KiB pipes would cost a context switch for each 64 KiB.
    (void)::fcntl(in_.get(), F_SETPIPE_SZ, kPipeBytes);
    (void)::fcntl(out_.get(), F_SETPIPE_SZ, kPipeBytes);
    return {};
  }

  Result<std::size_t> read(base::MutBytes out, const Wait& wait) override {
    for (;;) {
      const ssize_t got = ::read(in_.get(), out.data(), out.size());
      if (got >= 0) {
        count_received(static_cast<std::size_t>(got));
        return static_cast<std::size_t>(got);
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail_with(Code::kConnectionLost, "read from the peer", errno);
      VF_TRY(wait_for(in_.get(), POLLIN, stop_event(), wait));
    }
  }

  Status write(std::span<const base::Bytes> pieces, const Wait& wait) override {
    std::vector<iovec> vectors;
    vectors.reserve(pieces.size());
    for (const base::Bytes piece : pieces) {
      if (piece.empty()) continue;
      vectors.push_back({const_cast<std::uint8_t*>(piece.data()), piece.size()});
    }
    std::size_t first = 0;
    while (first < vectors.size()) {
      const std::size_t count = std::min(vectors.size() - first, kMaxPieces);
      const ssize_t put = write_some(&vectors[first], count);
      if (put >= 0) {
        count_sent(static_cast<std::size_t>(put));
        advance(vectors, first, static_cast<std::size_t>(put));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail_with(Code::kConnectionLost, "write to the peer", errno);
      VF_TRY(wait_for(out_.get(), POLLOUT, stop_event(), wait));
    }
    return {};
  }

  void end_writing() override {
    if (socket_) {
      ::shutdown(out_.get(), SHUT_WR);
    } else {
      if (out_flags_ >= 0) (void)::fcntl(out_.get(), F_SETFL, out_flags_);
      out_.reset();
    }
  }

  bool has_integrity() const override { return false; }
  Result<JoinToken> join_token(const SessionId& /*session*/) override {
    return fail_with(Code::kUnsupported, "a byte stream carries one connection only");
  }
  std::optional<std::chrono::microseconds> round_trip() const override { return std::nullopt; }

 private:
  static Result<int> make_non_blocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return fail_sys("fcntl");
    return flags;
  }

  ssize_t write_some(iovec* pieces, std::size_t count) {
    if (socket_) {
      msghdr message{};
      message.msg_iov = pieces;
      message.msg_iovlen = count;
      return ::sendmsg(out_.get(), &message, MSG_NOSIGNAL);
    }
    SigpipeGuard guard;
    const ssize_t put = ::writev(out_.get(), pieces, static_cast<int>(count));
    if (put < 0 && errno == EPIPE) {
      guard.raised();
      errno = EPIPE;
    }
    return put;
  }

  const std::shared_ptr<void> companion_;  // first, so that it goes last
  base::UniqueFd in_;
  base::UniqueFd out_;  // used and closed by the writing thread only
  const bool socket_;
  int in_flags_ = -1;
  int out_flags_ = -1;
};

}  // namespace

Result<std::unique_ptr<Link>> make_fd_link(base::UniqueFd in, base::UniqueFd out,
                                           std::shared_ptr<void> companion) {
  auto link = std::make_unique<FdLink>(std::move(in), std::move(out), std::move(companion));
  VF_TRY(link->prepare());
  return link;
}

}  // namespace volferry::transport
