// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "cli/escape.h"

namespace volferry::cli {

namespace {

// What to do about a system error; empty where the code of the error knows better.
std::string_view errno_hint(int os_errno) {
  switch (os_errno) {
    case EACCES:
    case EPERM:
      return "run as a user with the rights to it, or exclude it";
    case EROFS:
      return "mount the file system writable";
    case ENOENT:
      return "check the path";
    case ENOTDIR:
    case EISDIR:
      return "check what the path is: a directory goes to a directory, a file to a file";
    case ENOSPC:
    case EDQUOT:
      return "free space there and run it again: what arrived is reused";
    case ENAMETOOLONG:
      return "shorten the name, or exclude it";
    case EIO:
      return "the device reports an error, see the kernel's log";
    case EOPNOTSUPP:
      return "the file system cannot store this; leave it out with the --no-... options";
    default:
      return {};
  }
}

std::string_view code_hint(Code code) {
  switch (code) {
    case Code::kUsage:
      return "see 'volferry --help'";
    case Code::kItemFailed:
      return "see the items named above";
    case Code::kSourceChanged:
    case Code::kMismatch:
      return "run it again, best on a snapshot or with the writer stopped";
    case Code::kConnect:
      return "check the address, and that 'volferry serve' (or sshd) runs there";
    case Code::kAuth:
      return "check that both ends have the same key, or certificates of the same authority";
    case Code::kProtocol:
      return "use the same version of volferry at both ends";
    case Code::kConnectionLost:
    case Code::kTimeout:
      return "run it again: it continues from what arrived";
    case Code::kDestinationFull:
      return "free space there and run it again: what arrived is reused";
    case Code::kDestinationWrite:
      return "check the destination's rights, mount and kernel log";
    case Code::kSourceRead:
      return "check the source's rights and kernel log";
    case Code::kDestinationTooSmall:
      return "enlarge the destination";
    case Code::kDifferences:
      return "run 'volferry sync' to make them equal";
    case Code::kIdentity:
      return "check which volume each end was given";
    case Code::kInterrupted:
    case Code::kTerminated:
    case Code::kCancelled:
      return "run it again to continue";
    case Code::kUnsupported:
      return "this kernel or file system lacks it";
    case Code::kInternal:
    case Code::kSystem:
      return "if this looks like a bug, report it with the output of -v";
  }
  return {};
}

// The code's hint is about the whole run, so it wins unless the system's reason says more.
std::string_view hint_of(const Error& error) {
  const bool vague = error.code == Code::kSystem || error.code == Code::kSourceRead ||
                     error.code == Code::kDestinationWrite || error.code == Code::kItemFailed ||
                     error.code == Code::kUsage;
  const std::string_view by_errno = errno_hint(error.os_errno);
  return vague && !by_errno.empty() ? by_errno : code_hint(error.code);
}

// Whether the text names the path as a word of its own: `read a/b: ...` does so for `a/b`, but not
// for `a`.
bool names(std::string_view text, std::string_view path) {
  const auto ends_word = [&](std::size_t at) {
    return at >= text.size() || text[at] == ' ' || text[at] == ':' || text[at] == '\'' ||
           text[at] == '"' || text[at] == ';';
  };
  for (std::size_t at = text.find(path); at != std::string_view::npos; at = text.find(path, at + 1))
    if ((at == 0 || ends_word(at - 1)) && ends_word(at + path.size())) return true;
  return false;
}

std::string with_hint(std::string text, std::string_view hint) {
  if (!hint.empty() && text.find("; ") == std::string::npos) text += fmt::format("; {}", hint);
  return text;
}

}  // namespace

std::string error_line(const Error& error) {
  std::string text = error.message();
  if (text.empty()) text = reason(error.code);
  return "volferry: error: " + escape_line(with_hint(std::move(text), hint_of(error)));
}

std::string item_text(const ItemError& error) {
  std::string text = error.what;
  if (!error.path.empty() && !names(text, error.path))
    text += (text.empty() ? "" : ": ") + escape_bytes(error.path);
  if (error.os_errno != 0) {
    const std::string why = std::generic_category().message(error.os_errno);
    if (text.find(why) == std::string::npos) text += ": " + why;
  }
  return text;
}

std::string item_error_line(const ItemError& error) {
  const std::string_view hint =
      error.changed ? code_hint(Code::kSourceChanged) : errno_hint(error.os_errno);
  return "volferry: error: " + escape_line(with_hint(item_text(error), hint));
}

std::string warning_line(const ItemError& warning) {
  return "volferry: warning: " + escape_line(item_text(warning));
}

}  // namespace volferry::cli
