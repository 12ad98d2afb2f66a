// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "cli/escape.h"

namespace volferry::cli {

namespace {

std::unexpected<Error> bad_endpoint(std::string_view text, std::string_view why) {
  return fail_with(Code::kUsage, fmt::format("endpoint '{}': {}", escape_bytes(text), why));
}

// `HOST`, `HOST:PORT` and the same with `[IPV6]`, taken apart. `port` is the text after the colon,
// if there is one.
struct HostPort {
  std::string_view host;
  std::optional<std::string_view> port;
};
std::optional<HostPort> split_host_port(std::string_view text) {
  HostPort parts;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    parts.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (!rest.empty() && rest[0] != ':') return std::nullopt;
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    parts.host = text.substr(0, colon);
    rest = text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos) return std::nullopt;  // bare IPv6
  }
  if (!rest.empty()) parts.port = rest.substr(1);
  return parts;
}

std::optional<std::uint16_t> parse_port(std::string_view text, unsigned low) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (port < low || port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(port);
}

// A leading '-' would be taken for an option by ssh; space and control characters have no place in
// either.
bool plain_word(std::string_view word) {
  if (word.empty() || word[0] == '-') return false;
  for (const char c : word)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return false;
  return true;
}

struct UserHost {
  std::string_view user;
  std::string_view host;
  bool has_user = false;
};
UserHost split_user(std::string_view authority) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return {{}, authority, false};
  return {authority.substr(0, at), authority.substr(at + 1), true};
}

Status check_words(std::string_view text, const UserHost& name, std::string_view host) {
  if (!plain_word(host)) return bad_endpoint(text, "the host name is missing or not valid");
  if (name.has_user && !plain_word(name.user))
    return bad_endpoint(text, "the user name is missing or not valid");
  return {};
}

Result<Endpoint> parse_tls(std::string_view text, std::string_view rest) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const UserHost name = split_user(rest.substr(0, slash));
  if (name.has_user)
    return bad_endpoint(text, "tls:// takes no user; the key identifies the client");
  const std::optional<HostPort> parts = split_host_port(name.host);
  if (!parts)
    return bad_endpoint(text, "write it as tls://HOST[:PORT][/SUBPATH], IPv6 in brackets");
  VF_TRY(check_words(text, name, parts->host));

  TlsEndpoint endpoint;
  endpoint.target.host = parts->host;
  endpoint.target.port = kDefaultPort;
  if (parts->port) {
    const std::optional<std::uint16_t> port = parse_port(*parts->port, 1);
    if (!port) return bad_endpoint(text, "the port must be a number from 1 to 65535");
    endpoint.target.port = *port;
  }
  std::string_view subpath = rest.substr(slash);
  while (subpath.starts_with('/')) subpath.remove_prefix(1);
  endpoint.subpath = subpath;
  return endpoint;
}

Result<Endpoint> parse_ssh_url(std::string_view text, std::string_view rest) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const UserHost name = split_user(rest.substr(0, slash));
  const std::optional<HostPort> parts = split_host_port(name.host);
  if (!parts)
    return bad_endpoint(text, "write it as ssh://[USER@]HOST[:PORT]/PATH, IPv6 in brackets");
  VF_TRY(check_words(text, name, parts->host));

  SshEndpoint endpoint;
  endpoint.target.user = name.user;
  endpoint.target.host = parts->host;
  if (parts->port) {
    const std::optional<std::uint16_t> port = parse_port(*parts->port, 1);
    if (!port) return bad_endpoint(text, "the port must be a number from 1 to 65535");
    endpoint.target.port = *port;
  }
  std::string_view path = rest.substr(slash);
  if (path.starts_with("/~/")) path.remove_prefix(3);
  endpoint.path = path.empty() ? "." : path;
  return endpoint;
}

// The colon that makes `[USER@]HOST:PATH` of a text: the first one before any slash, past an
// address in brackets.
std::optional<std::size_t> remote_colon(std::string_view text) {
  const std::string_view head = text.substr(0, std::min(text.find('/'), text.size()));
  std::size_t from = 0;
  const std::size_t open = head.find('[');
  if (open == 0 || (open != std::string_view::npos && head[open - 1] == '@')) {
    const std::size_t close = head.find(']', open);
    if (close != std::string_view::npos) from = close;
  }
  const std::size_t colon = head.find(':', from);
  if (colon == std::string_view::npos) return std::nullopt;
  return colon;
}

Result<Endpoint> parse_ssh_short(std::string_view text, std::size_t colon) {
  const UserHost name = split_user(text.substr(0, colon));
  std::string_view host = name.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.find_first_of("[]") != std::string_view::npos)
    return bad_endpoint(text, "write an IPv6 address as [ADDRESS]:PATH");
  VF_TRY(check_words(text, name, host));

  SshEndpoint endpoint;
  endpoint.target.user = name.user;
  endpoint.target.host = host;
  const std::string_view path = text.substr(colon + 1);
  endpoint.path = path.empty() ? "." : path;
  return endpoint;
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  if (text.empty()) return fail_with(Code::kUsage, "an endpoint is empty");
  if (text.starts_with("tls://")) return parse_tls(text, text.substr(6));
  if (text.starts_with("ssh://")) return parse_ssh_url(text, text.substr(6));
  const std::optional<std::size_t> colon = remote_colon(text);
  if (!colon) return LocalEndpoint{std::string(text)};
  if (text.substr(*colon).starts_with("://"))
    return bad_endpoint(text, "unknown scheme: use tls://, ssh:// or HOST:PATH");
  return parse_ssh_short(text, *colon);
}

Result<ListenAddress> parse_listen(std::string_view text) {
  const std::optional<HostPort> parts = split_host_port(text);
  if (!parts || text.empty())
    return fail_with(Code::kUsage,
                     fmt::format("'{}' is not ADDR:PORT, IPv6 in brackets", escape_bytes(text)));
  ListenAddress address;
  if (parts->host != "::" && parts->host != "*") address.host = parts->host;
  if (parts->port) {
    const std::optional<std::uint16_t> port = parse_port(*parts->port, 0);
    if (!port)
      return fail_with(Code::kUsage,
                       fmt::format("'{}': the port must be a number from 0 to 65535", text));
    address.port = *port;
  }
  return address;
}

bool is_remote(const Endpoint& endpoint) {
  return !std::holds_alternative<LocalEndpoint>(endpoint);
}

}  // namespace volferry::cli
