// SPDX-License-Identifier: Apache-2.0
// How a channel comes to be: TLS client and server, SSH by running the system's ssh, and a
// byte-stream pair for `serve --stdio` and tests.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/unique_fd.h"
#include "engine/transport/channel.h"

namespace volferry::transport {

// Exactly one of a pre-shared key and a certificate is set.
struct TlsCredentials {
  ~TlsCredentials();
  std::string psk_identity;
  std::vector<std::uint8_t> psk;             // 16 .. 64 bytes; wiped on destruction
  std::string cert_file, key_file, ca_file;  // PEM; both sides verify the other against the CA
  bool use_psk() const { return !psk.empty(); }
};

// Reads `identity:hex` lines (stunnel's PSKsecrets; '#' comments and blank lines allowed). Refuses,
// with kUsage and a text that says what to do, a file that is missing, that group or others can
// read (unless it lies in a Kubernetes secret mount: a path through a `..data` symlink), that is a
// planted symlink in a world-writable directory, or that has no valid line. A key may have 16 to 64
// bytes.
struct PskEntry {
  ~PskEntry();  // wipes the key
  std::string identity;
  std::vector<std::uint8_t> key;
};
Result<std::vector<PskEntry>> read_psk_file(const std::string& path);
// The keys of a folder, as a mounted secret has them: files `id` (1 to 128 bytes) and `psk` (hex),
// a line end at the end allowed in both, or one file `psk.txt` as above. The same rules.
Result<std::vector<PskEntry>> read_psk_folder(const std::string& folder);
// The permission rule alone, for --key files.
Status check_key_file(const std::string& path);

struct TlsTarget {
  std::string host;  // name or address, IPv6 without brackets
  std::uint16_t port = 8000;
};

// Connects `options.streams` TLS connections (fewer if the server allows or lets join fewer) and
// does the Hello exchange. Errors: kConnect (name, host, port and the system's reason), kAuth
// (wrong key, wrong certificate), kProtocol (not a volferry, or another major version), kIdentity
// (the server refused our identity). `cancel` ends waiting early.
Result<std::unique_ptr<Channel>> connect_tls(const TlsTarget& target,
                                             const TlsCredentials& credentials,
                                             const ChannelOptions& options,
                                             const std::atomic<bool>& cancel);

struct SshTarget {
  std::string user;  // may be empty
  std::string host;
  std::uint16_t port = 0;  // 0: ssh's default
};
// Runs `ssh_command` (words split as a shell would, no shell involved) with `-p PORT USER@HOST`
// and, as the remote command, `remote_command` followed by the quoted `remote_args`. One
// connection. ssh's stderr is passed through. kConnect where ssh ends before the Hello exchange,
// with its exit status; kAuth for its status 255 with a permission text is not guessed: kConnect it
// stays.
Result<std::unique_ptr<Channel>> connect_ssh(const SshTarget& target,
                                             const std::string& ssh_command,
                                             const std::string& remote_command,
                                             const std::vector<std::string>& remote_args,
                                             const ChannelOptions& options,
                                             const std::atomic<bool>& cancel);

// The client or server end of a channel over two pipe or socket descriptors (may be the same one
// duplicated). Used by `serve --stdio`, and by tests over a socketpair.
Result<std::unique_ptr<Channel>> stdio_client(base::UniqueFd in, base::UniqueFd out,
                                              const ChannelOptions& options);
Result<std::unique_ptr<Channel>> stdio_server(base::UniqueFd in, base::UniqueFd out,
                                              const ChannelOptions& options);

struct ServerOptions {
  std::string listen_host;    // empty: all addresses
  std::uint16_t port = 8000;  // 0: the kernel picks
  std::vector<PskEntry> psk;  // or the certificate files
  std::string cert_file, key_file, ca_file;
  ChannelOptions channel;        // streams: the most a session may have
  unsigned max_handshakes = 64;  // open at once before authentication
  std::chrono::milliseconds handshake_timeout{10'000};
  // Told of a peer that bears a right key and does not speak this protocol, or another major
  // version of it: kProtocol. Called on threads of the server, several at once; ends before the
  // server does.
  std::function<void(const Error&)> incompatible;
};

// A listening TLS server. Authentication happens off the accept loop; before it a peer holds little
// memory.
class Server {
 public:
  virtual ~Server() = default;
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options);
  // "ADDR:PORT" as bound, IPv6 in brackets.
  virtual std::string address() const = 0;
  // Waits for the next session: its first connection is authenticated and its Hello answered;
  // further connections join it by themselves. kCancelled after `stop`.
  virtual Result<std::unique_ptr<Channel>> accept() = 0;
  virtual void stop() = 0;
};

}  // namespace volferry::transport
