// SPDX-License-Identifier: Apache-2.0
#include "engine/base/random.h"
#include "engine/transport/connect.h"
#include "engine/transport/internal/fd_link.h"
#include "engine/transport/internal/handshake.h"

namespace volferry::transport {

namespace {

ChannelOptions one_stream(ChannelOptions options) {
  options.streams = 1;
  return options;
}

Wait handshake_wait(const ChannelOptions& options) {
  if (options.connect_timeout.count() == 0) return {};
  return {.deadline = Clock::now() + options.connect_timeout};
}

}  // namespace

Result<std::unique_ptr<Channel>> stdio_client(base::UniqueFd in, base::UniqueFd out,
                                              const ChannelOptions& options) {
  VF_ASSIGN(std::unique_ptr<Link> link, make_fd_link(std::move(in), std::move(out)));
  VF_ASSIGN(const wire::HelloAck ack, hello_first(*link, options, handshake_wait(options)));
  return std::make_unique<ChannelImpl>(std::move(link), peer_info(ack), one_stream(options));
}

Result<std::unique_ptr<Channel>> stdio_server(base::UniqueFd in, base::UniqueFd out,
                                              const ChannelOptions& options) {
  VF_ASSIGN(std::unique_ptr<Link> link, make_fd_link(std::move(in), std::move(out)));
  const Wait wait = handshake_wait(options);
  VF_ASSIGN(const wire::Hello hello, receive_hello(*link, wait));
  if (hello.stream != 0) {
    return refuse(*link, {Code::kProtocol, 0, "a byte stream carries one connection only"}, wait);
  }
  SessionId session{};
  base::fill_random(session);
  const wire::HelloAck ack = make_ack(one_stream(options), session);
  VF_TRY(send_frame(*link, wire::make_frame(ack), wait));
  return std::make_unique<ChannelImpl>(std::move(link), peer_info(hello), one_stream(options));
}

}  // namespace volferry::transport
