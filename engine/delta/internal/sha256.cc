// SPDX-License-Identifier: Apache-2.0
#include "engine/delta/internal/sha256.h"

#include <openssl/evp.h>

#include <memory>

#include "engine/base/check.h"

namespace volferry::delta::internal {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using UniqueContext = std::unique_ptr<EVP_MD_CTX, FreeContext>;

UniqueContext make_context() {
  UniqueContext context(EVP_MD_CTX_new());
  VF_CHECK(context != nullptr, "out of memory");
  VF_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1, "no SHA-256 in OpenSSL");
  return context;
}

}  // namespace

std::array<std::uint8_t, 32> keyed_sha256(base::Bytes key, std::uint8_t domain, base::Bytes data) {
  // One context a thread: finding the implementation anew costs more than hashing 1 KiB.
  thread_local const UniqueContext context = make_context();
  std::array<std::uint8_t, 32> digest;
  const bool done = EVP_DigestInit_ex(context.get(), nullptr, nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), key.data(), key.size()) == 1 &&
                    EVP_DigestUpdate(context.get(), &domain, 1) == 1 &&
                    EVP_DigestUpdate(context.get(), data.data(), data.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  VF_CHECK(done, "SHA-256 failed");
  return digest;
}

}  // namespace volferry::delta::internal
