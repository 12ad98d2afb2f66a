// SPDX-License-Identifier: Apache-2.0
#include "cli/credentials.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "cli/escape.h"

namespace volferry::cli {

namespace {

// The keys of the lines that were not chosen have no business in memory.
void wipe(std::vector<transport::PskEntry>& entries) {
  for (transport::PskEntry& entry : entries) OPENSSL_cleanse(entry.key.data(), entry.key.size());
}

Result<transport::TlsCredentials> load_psk(const KeyArguments& keys) {
  VF_ASSIGN(auto entries, transport::read_psk_file(keys.psk_file));
  auto chosen = entries.begin();
  if (!keys.psk_identity.empty())
    chosen = std::find_if(entries.begin(), entries.end(), [&](const transport::PskEntry& entry) {
      return entry.identity == keys.psk_identity;
    });
  if (chosen == entries.end()) {
    wipe(entries);
    return fail_with(Code::kUsage,
                     fmt::format("{}: no line for the identity '{}'; check --psk-identity",
                                 escape_bytes(keys.psk_file), escape_bytes(keys.psk_identity)));
  }
  transport::TlsCredentials credentials;
  credentials.psk_identity = chosen->identity;
  credentials.psk = chosen->key;
  wipe(entries);
  return credentials;
}

}  // namespace

Result<transport::TlsCredentials> load_credentials(const KeyArguments& keys) {
  if (!keys.psk_file.empty()) return load_psk(keys);
  VF_TRY(transport::check_key_file(keys.key));
  transport::TlsCredentials credentials;
  credentials.cert_file = keys.cert;
  credentials.key_file = keys.key;
  credentials.ca_file = keys.ca;
  return credentials;
}

Result<transport::ServerOptions> with_server_keys(transport::ServerOptions options,
                                                  const KeyArguments& keys) {
  if (!keys.psk_file.empty()) {
    VF_ASSIGN(options.psk, transport::read_psk_file(keys.psk_file));
    return options;
  }
  VF_TRY(transport::check_key_file(keys.key));
  options.cert_file = keys.cert;
  options.key_file = keys.key;
  options.ca_file = keys.ca;
  return options;
}

}  // namespace volferry::cli
