// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/escape.h"

#include "engine/base/bytes.h"
#include "engine/base/random.h"
#include "engine/base/unique_fd.h"

namespace volferry::cli {

namespace {

constexpr std::size_t kKeyBytes = 32;

std::string key_line(const std::string& identity) {
  std::array<std::uint8_t, kKeyBytes> key{};
  base::fill_random(key);
  std::string line = fmt::format("{}:{}", identity, base::to_hex(key));
  OPENSSL_cleanse(key.data(), key.size());
  return line;
}

// A key file that cannot be written completely is removed again: half a key would be refused later,
// or guessed sooner.
Status write_key_file(const std::string& path, std::string_view line) {
  const base::UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const int open_errno = errno;
  if (!file && open_errno == EEXIST)
    return fail_with(Code::kUsage,
                     fmt::format("create {}: it exists already; remove it or choose another name",
                                 escape_bytes(path)));
  if (!file)
    return fail_with(Code::kUsage, fmt::format("create {}", escape_bytes(path)), open_errno);
  const std::string text = std::string(line) + "\n";
  const bool written =
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && fsync(file.get()) == 0) return {};
  const int write_errno = errno;
  unlink(path.c_str());
  return fail_with(Code::kDestinationWrite, fmt::format("write {}", escape_bytes(path)),
                   write_errno);
}

}  // namespace

int keygen_command(const CommandArguments& arguments, Console& console) {
  const auto parsed = parse_keygen(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed)) {
    console.out_text(help->text);
    return 0;
  }
  const auto& keygen = std::get<KeygenArguments>(*parsed);
  const std::string line = key_line(keygen.identity);
  if (keygen.output.empty()) {
    console.out(line);
    return 0;
  }
  const Status written = write_key_file(keygen.output, line);
  return written ? 0 : report_failure(written.error(), arguments, console);
}

}  // namespace volferry::cli
