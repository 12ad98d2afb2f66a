// SPDX-License-Identifier: Apache-2.0
#include "engine/session/item_code.h"

namespace volferry::session {

std::string item_code(wire::EntryType type, bool is_new, bool content, bool size,
                      const MetaDiff& diff, char kind) {
  const bool file = type == wire::EntryType::kFile;
  char update = '.';
  if (kind != '\0') {
    update = kind;
  } else if (file && content) {
    update = '>';
  } else if (content || is_new) {
    update = 'c';
  }
  char item = 'f';
  switch (type) {
    case wire::EntryType::kFile:
      item = 'f';
      break;
    case wire::EntryType::kDirectory:
      item = 'd';
      break;
    case wire::EntryType::kSymlink:
      item = 'L';
      break;
    case wire::EntryType::kFifo:
    case wire::EntryType::kSocket:
      item = 'S';
      break;
    case wire::EntryType::kCharDevice:
    case wire::EntryType::kBlockDevice:
      item = 'D';
      break;
  }
  std::string code{update, item};
  if (is_new) return code + "+++++++++";
  // A file's content column says that only a comparison of content could find it, as rsync's does.
  code += content && (!file || (!size && !diff.mtime)) ? 'c' : '.';
  code += size ? 's' : '.';
  code += diff.mtime ? 't' : '.';
  code += diff.mode ? 'p' : '.';
  code += diff.owner ? 'o' : '.';
  code += diff.group ? 'g' : '.';
  code += '.';
  code += diff.acl ? 'a' : '.';
  code += diff.xattr ? 'x' : '.';
  return code;
}

}  // namespace volferry::session
