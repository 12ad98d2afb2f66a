// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "cli/escape.h"
#include "cli/mover/values.h"

#include "engine/transport/wire/limits.h"

namespace volferry::cli::mover {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

std::unexpected<Error> unreadable(std::string_view what) {
  return fail_with(Code::kIdentity,
                   fmt::format("the peer's identity tuple cannot be used: {}; use the same "
                               "version of volferry at both ends",
                               what));
}

// Takes single fields out of the parsed tuple; the first that is wrong is remembered.
class Fields {
 public:
  explicit Fields(const Json& tuple) : tuple_(tuple) {}

  void text(const char* name, std::size_t max_bytes, std::string& target) {
    const auto found = tuple_.find(name);
    if (found == tuple_.end()) return;
    const auto* value = found->get_ptr<const std::string*>();
    if (value == nullptr || !plain_text(*value, max_bytes))
      bad(name);
    else
      target = *value;
  }
  void number(const char* name, std::uint64_t& target) {
    const auto found = tuple_.find(name);
    if (found == tuple_.end()) return;
    const auto* value = found->get_ptr<const std::uint64_t*>();
    if (value == nullptr || *value > static_cast<std::uint64_t>(INT64_MAX))
      bad(name);
    else
      target = *value;
  }
  void mode(const char* name, VolumeMode& target) {
    std::string word;
    text(name, 16, word);
    if (word == mode_name(VolumeMode::kBlock))
      target = VolumeMode::kBlock;
    else if (word == mode_name(VolumeMode::kFilesystem))
      target = VolumeMode::kFilesystem;
    else
      bad(name);
  }
  void epoch(const char* name, std::string& target) {
    std::string word;
    text(name, wire::kMaxIdentity, word);
    if (word.empty()) return;
    if (auto epoch = parse_epoch(word))
      target = *std::move(epoch);
    else
      bad(name);
  }
  Status status() const {
    if (bad_.empty()) return {};
    return unreadable("field " + bad_);
  }

 private:
  void bad(const char* name) {
    if (bad_.empty()) bad_ = name;
  }
  const Json& tuple_;
  std::string bad_;
};

}  // namespace

std::string_view mode_name(VolumeMode mode) {
  return mode == VolumeMode::kBlock ? "Block" : "Filesystem";
}

Result<VolumeMode> volume_mode(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return fail_with(Code::kUsage, "VOLFERRY_VOLUME: " + escape_bytes(path), errno);
  if (S_ISDIR(status.st_mode)) return VolumeMode::kFilesystem;
  if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) return VolumeMode::kBlock;
  return fail_with(Code::kUsage,
                   fmt::format("VOLFERRY_VOLUME: {} is neither a directory, a regular file nor a "
                               "block device",
                               escape_bytes(path)));
}

std::string identity_json(const Identity& identity) {
  const Json tuple = {{"v", kVersion},
                      {"replication_id", identity.replication_id},
                      {"epoch", identity.epoch},
                      {"seq", identity.seq},
                      {"attempt", identity.attempt},
                      {"volume_mode", mode_name(identity.volume_mode)},
                      {"size", identity.size},
                      {"source_volume_id", identity.source_volume_id},
                      {"final_sync_id", identity.final_sync_id}};
  return tuple.dump();
}

std::vector<std::uint8_t> encode_identity(const Identity& identity) {
  Json tuple = Json::parse(identity_json(identity));
  if (!identity.acknowledged.empty()) tuple["acknowledged"] = identity.acknowledged;
  const std::string text = tuple.dump();
  return {text.begin(), text.end()};
}

Result<std::optional<Identity>> decode_identity(const std::vector<std::uint8_t>& bytes) {
  if (bytes.empty()) return std::optional<Identity>();
  if (bytes.size() > wire::kMaxIdentity) return unreadable("it is too long");
  // A tuple is flat: deeper nesting could only be meant to exhaust the stack.
  const auto flat = [](int depth, Json::parse_event_t, Json&) { return depth <= 2; };
  const Json tuple = Json::parse(bytes.begin(), bytes.end(), flat, false);
  if (!tuple.is_object()) return unreadable("it is no JSON object");
  std::uint64_t version = 0;
  Identity identity;
  Fields fields(tuple);
  fields.number("v", version);
  fields.text("replication_id", kMaxReplicationId, identity.replication_id);
  fields.epoch("epoch", identity.epoch);
  fields.number("seq", identity.seq);
  fields.text("attempt", kMaxAttempt, identity.attempt);
  fields.mode("volume_mode", identity.volume_mode);
  fields.number("size", identity.size);
  fields.text("source_volume_id", kMaxVolumeId, identity.source_volume_id);
  fields.text("final_sync_id", kMaxFinalSyncId, identity.final_sync_id);
  fields.text("acknowledged", kMaxAcknowledged, identity.acknowledged);
  if (version != kVersion) return unreadable(fmt::format("its version is {}", version));
  VF_TRY(fields.status());
  return std::optional(std::move(identity));
}

}  // namespace volferry::cli::mover
