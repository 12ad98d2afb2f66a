// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/base/bytes.h"
#include "engine/transport/connect.h"

namespace volferry::transport {

namespace {

constexpr std::size_t kMinKeyBytes = 16;
constexpr std::size_t kMaxKeyBytes = 64;
constexpr std::size_t kMaxPskIdentity = 128;
constexpr std::size_t kMaxKeyFile = 1 << 20;

// Text that is wiped when it goes.
struct Secret {
  std::string text;
  ~Secret() { OPENSSL_cleanse(text.data(), text.size()); }
};

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string link_text(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length < 0 ? std::string{} : std::string(target.data(), static_cast<std::size_t>(length));
}

bool trusted_owner(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

// A secret volume shows NAME -> ..data/NAME, and ..data -> a dated folder, both made by the
// kubelet. Its files are readable by all inside the container, and its folder is world-writable, so
// neither says anything there.
bool in_secret_mount(const std::string& path) {
  const bool by_link = link_text(path).starts_with("..data/");
  const bool by_path = path.find("/..data/") != std::string::npos;
  if (!by_link && !by_path) return false;
  const std::string data =
      by_link ? parent_of(path) + "/..data" : path.substr(0, path.find("/..data/") + 7);
  struct stat status{};
  return ::lstat(data.c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
         trusted_owner(status.st_uid);
}

std::unexpected<Error> refuse_file(const std::string& path, const std::string& why) {
  return fail_with(Code::kUsage, "key file " + path + ": " + why);
}

// Opens the file and applies the rule to what was opened, so that nothing can be swapped in
// between.
Result<base::UniqueFd> open_key_file(const std::string& path) {
  const bool secret_mount = in_secret_mount(path);
  struct stat folder{};
  const bool planted = !secret_mount && !link_text(path).empty() &&
                       ::stat(parent_of(path).c_str(), &folder) == 0 &&
                       (folder.st_mode & S_IWOTH) != 0;
  if (planted) {
    return refuse_file(
        path, "is a symbolic link in a folder that everyone can write; name the file itself");
  }
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return fail_with(Code::kUsage, "key file " + path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_with(Code::kUsage, "key file " + path, errno);
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return refuse_file(path, "is not a regular file");
  }
  if (!trusted_owner(status.st_uid)) return refuse_file(path, "belongs to another user; chown it");
  if (!secret_mount && (status.st_mode & 077) != 0) {
    return refuse_file(path, fmt::format("others can read it (mode {:04o}); chmod 600 it",
                                         static_cast<unsigned>(status.st_mode & 07777)));
  }
  return fd;
}

Status read_all(int fd, const std::string& path, Secret& out) {
  // Reserved in full: growing would leave copies of keys behind.
  out.text.resize(kMaxKeyFile + 1);
  std::size_t length = 0;
  while (length < out.text.size()) {
    const ssize_t got = ::read(fd, out.text.data() + length, out.text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_with(Code::kUsage, "key file " + path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMaxKeyFile) return refuse_file(path, "is larger than 1 MiB");
  out.text.resize(length);
  return {};
}

std::string_view without_line_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool key_length_ok(const PskEntry& entry) {
  return entry.key.size() >= kMinKeyBytes && entry.key.size() <= kMaxKeyBytes;
}
constexpr std::string_view kBadKey =
    "the key must be 16 to 64 bytes in hexadecimal; make one with keygen";

Result<PskEntry> parse_line(std::string_view line, const std::string& where) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > kMaxPskIdentity) {
    return refuse_file(where, "expected IDENTITY:HEX, an identity of 1 to 128 bytes");
  }
  PskEntry entry;
  entry.identity = std::string(line.substr(0, colon));
  entry.key = base::from_hex(line.substr(colon + 1));
  if (!key_length_ok(entry)) return refuse_file(where, std::string(kBadKey));
  return entry;
}

}  // namespace

TlsCredentials::~TlsCredentials() { OPENSSL_cleanse(psk.data(), psk.size()); }
PskEntry::~PskEntry() { OPENSSL_cleanse(key.data(), key.size()); }

Status check_key_file(const std::string& path) {
  VF_ASSIGN(const base::UniqueFd fd, open_key_file(path));
  return {};
}

Result<std::vector<PskEntry>> read_psk_file(const std::string& path) {
  VF_ASSIGN(const base::UniqueFd fd, open_key_file(path));
  Secret secret;
  VF_TRY(read_all(fd.get(), path, secret));
  std::vector<PskEntry> entries;
  std::string_view rest = secret.text;
  for (unsigned number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = trimmed(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    VF_ASSIGN(PskEntry entry, parse_line(line, fmt::format("{} line {}", path, number)));
    const bool twice = std::ranges::any_of(
        entries, [&](const PskEntry& other) { return other.identity == entry.identity; });
    if (twice) return refuse_file(path, fmt::format("line {} repeats an identity", number));
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return refuse_file(path, "has no IDENTITY:HEX line");
  return entries;
}

Result<std::vector<PskEntry>> read_psk_folder(const std::string& folder) {
  const std::string id_path = folder + "/id";
  const std::string psk_path = folder + "/psk";
  const bool pair = ::access(id_path.c_str(), F_OK) == 0 || ::access(psk_path.c_str(), F_OK) == 0;
  if (!pair) return read_psk_file(folder + "/psk.txt");
  VF_ASSIGN(const base::UniqueFd id_fd, open_key_file(id_path));
  VF_ASSIGN(const base::UniqueFd psk_fd, open_key_file(psk_path));
  Secret id;
  Secret psk;
  VF_TRY(read_all(id_fd.get(), id_path, id));
  VF_TRY(read_all(psk_fd.get(), psk_path, psk));
  std::vector<PskEntry> entries(1);
  PskEntry& entry = entries.front();
  entry.identity = std::string(without_line_end(id.text));
  if (entry.identity.empty() || entry.identity.size() > kMaxPskIdentity ||
      entry.identity.find('\0') != std::string::npos) {
    return refuse_file(id_path, "expected an identity of 1 to 128 bytes");
  }
  entry.key = base::from_hex(without_line_end(psk.text));
  if (!key_length_ok(entry)) return refuse_file(psk_path, std::string(kBadKey));
  return entries;
}

}  // namespace volferry::transport
