// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wire/messages.h"

namespace volferry::wire {

FrameClass frame_class(MessageType type) {
  switch (type) {
    case MessageType::kDirList:
    case MessageType::kListEnd:  // must not overtake the lists it ends
      return FrameClass::kList;
    case MessageType::kPack:
    case MessageType::kRangeData:
    case MessageType::kRangeRun:
    case MessageType::kFileEnd:
      return FrameClass::kData;
    default:
      return FrameClass::kControl;
  }
}

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return false;
  if (name == "." || name == "..") return false;
  for (const char c : name) {
    if (c == '/' || c == '\0') return false;
  }
  return true;
}

}  // namespace volferry::wire
