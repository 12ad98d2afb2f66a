// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "engine/transport/connect.h"
#include "engine/transport/internal/child_process.h"
#include "engine/transport/internal/command_words.h"
#include "engine/transport/internal/fd_link.h"
#include "engine/transport/internal/handshake.h"

namespace volferry::transport {

namespace {

// A person may be typing a password; sshd itself gives up after 120 s (LoginGraceTime).
constexpr std::chrono::seconds kLoginTime{130};
// For ssh's last words to be printed and its status to be known.
constexpr std::chrono::milliseconds kEndTime{2000};

struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int fds[2] = {-1, -1};
  if (::pipe2(fds, O_CLOEXEC) != 0) return fail_sys("pipe");
  return Pipe{base::UniqueFd(fds[0]), base::UniqueFd(fds[1])};
}

Result<std::vector<std::string>> command_line(const SshTarget& target,
                                              const std::string& ssh_command,
                                              const std::string& remote_command,
                                              const std::vector<std::string>& remote_args) {
  const std::string host = target.user.empty() ? target.host : target.user + "@" + target.host;
  // ssh would take it for an option.
  if (host.empty() || host.front() == '-') {
    return fail_with(Code::kUsage, "not a host name: " + host);
  }
  VF_ASSIGN(std::vector<std::string> words, split_words(ssh_command));
  if (target.port != 0) {
    words.push_back("-p");
    words.push_back(std::to_string(target.port));
  }
  words.push_back(host);
  std::string remote = remote_command;
  for (const std::string& arg : remote_args) remote.append(1, ' ').append(quote_word(arg));
  words.push_back(std::move(remote));
  return words;
}

Error explain(Error error, const std::string& program, ChildProcess& child) {
  const bool lost = error.code == Code::kConnectionLost || error.code == Code::kTimeout;
  if (!lost) return error;
  if (const std::optional<std::string> ended = child.wait_end(kEndTime)) {
    return {Code::kConnect, 0, program + " ended before the handshake: " + *ended};
  }
  return {Code::kConnect, 0, program + ": " + error.message()};
}

}  // namespace

Result<std::unique_ptr<Channel>> connect_ssh(const SshTarget& target,
                                             const std::string& ssh_command,
                                             const std::string& remote_command,
                                             const std::vector<std::string>& remote_args,
                                             const ChannelOptions& options,
                                             const std::atomic<bool>& cancel) {
  VF_ASSIGN(const std::vector<std::string> words,
            command_line(target, ssh_command, remote_command, remote_args));
  VF_ASSIGN(Pipe to_child, make_pipe());
  VF_ASSIGN(Pipe from_child, make_pipe());
  VF_ASSIGN(std::shared_ptr<ChildProcess> child,
            ChildProcess::start(words, to_child.read_end.get(), from_child.write_end.get()));
  to_child.read_end.reset();
  from_child.write_end.reset();
  VF_ASSIGN(std::unique_ptr<Link> link,
            make_fd_link(std::move(from_child.read_end), std::move(to_child.write_end), child));
  const Wait wait{.deadline = Clock::now() + kLoginTime, .cancel = &cancel};
  Result<wire::HelloAck> ack = hello_first(*link, options, wait);
  if (!ack) return std::unexpected(explain(std::move(ack).error(), words[0], *child));
  ChannelOptions one_stream = options;
  one_stream.streams = 1;
  return std::make_unique<ChannelImpl>(std::move(link), peer_info(*ack), one_stream);
}

}  // namespace volferry::transport
