// SPDX-License-Identifier: Apache-2.0
#include "engine/session/tally.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace volferry::session {

void Tally::remember(ItemError item) {
  (item.changed ? changed_count_ : error_count_).fetch_add(1);
  const std::lock_guard lock(mutex_);
  observer_.on_error(item);
  if (errors_.size() < Summary::kMaxErrors) errors_.push_back(std::move(item));
}

void Tally::item_error(std::string path, int os_errno, std::string what) {
  remember({std::move(path), os_errno, std::move(what), false});
}

void Tally::item_error(std::string path, const Error& error) {
  item_error(std::move(path), error.os_errno, error.context);
}

void Tally::list_ends() {
  list_complete = true;
  const auto passed = std::chrono::steady_clock::now() - begin_;
  std::int64_t never = -1;
  list_milliseconds_.compare_exchange_strong(
      never, std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
}

void Tally::set_image(std::string destination) {
  image_path_ = std::move(destination);
  image_.store(true);
}

void Tally::destination_error(std::string path, const Error& error) {
  if (image_.load()) path = image_path_;
  switch (error.os_errno) {
    case ENOSPC:
    case EDQUOT: {
      const std::lock_guard lock(mutex_);
      if (!full_)
        full_ = Error{Code::kDestinationFull, error.os_errno, path + ": " + error.context};
      full_flag_.store(true);
      return;
    }
    case EIO:
    case EROFS:
    case ENODEV:
      return fail({Code::kDestinationWrite, error.os_errno, path + ": " + error.context});
    default:
      break;
  }
  const bool call = error.code == Code::kSystem || error.code == Code::kDestinationWrite;
  if (call && image_.load()) {
    return fail({Code::kDestinationWrite, error.os_errno, path + ": " + error.context});
  }
  if (call) return item_error(std::move(path), error);
  if (error.code == Code::kCancelled) return;
  fail(error);
}

void Tally::source_error(std::string path, int os_errno, std::string what) {
  source_errors.fetch_add(1);
  if (image_.load()) return fail({Code::kSourceRead, os_errno, std::move(what)});
  item_error(std::move(path), os_errno, std::move(what));
}

std::optional<Error> Tally::full() const {
  const std::lock_guard lock(mutex_);
  return full_;
}

void Tally::clear_full() {
  const std::lock_guard lock(mutex_);
  full_.reset();
  full_flag_.store(false);
}

void Tally::item_changed(std::string path, std::string what) {
  remember({std::move(path), 0, std::move(what), true});
}

void Tally::warning(std::string path, std::string what) {
  const std::lock_guard lock(mutex_);
  observer_.on_warning({std::move(path), 0, std::move(what), false});
}

void Tally::change(const ItemChangeEvent& event) {
  const std::lock_guard lock(mutex_);
  observer_.on_change(event);
}

void Tally::difference(const DifferenceEvent& event) {
  differences.fetch_add(1);
  const std::lock_guard lock(mutex_);
  observer_.on_difference(event);
}

void Tally::progress(ProgressSnapshot::Phase phase) {
  ProgressSnapshot snapshot;
  snapshot.phase = phase;
  snapshot.total_known = list_complete.load();
  snapshot.files_total = files_total.load();
  snapshot.files_done = files_done.load();
  snapshot.bytes_total = bytes_total.load();
  snapshot.bytes_done = bytes_done.load();
  snapshot.literal_bytes = literal_bytes.load();
  snapshot.matched_bytes = matched_bytes.load();
  snapshot.zero_bytes = zero_bytes.load();
  snapshot.wire_sent = wire_sent.load();
  snapshot.wire_received = wire_received.load();
  const std::lock_guard lock(mutex_);
  observer_.on_progress(snapshot);
}

void Tally::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!fatal_) fatal_ = std::move(error);
  stopped_.store(true, std::memory_order_release);
}

std::optional<Error> Tally::fatal() const {
  const std::lock_guard lock(mutex_);
  return fatal_;
}

Summary Tally::summary() const {
  Summary out;
  out.files_total = files_total.load();
  out.files_transferred = files_transferred.load();
  out.files_deleted = files_deleted.load();
  out.dirs_total = dirs_total.load();
  out.bytes_total = bytes_total.load();
  out.literal_bytes = literal_bytes.load();
  out.matched_bytes = matched_bytes.load();
  out.zero_bytes = zero_bytes.load();
  out.owner_skipped = owner_skipped.load();
  out.list_seconds =
      static_cast<double>(std::max<std::int64_t>(0, list_milliseconds_.load())) / 1000;
  out.differences = differences.load();
  out.error_count = error_count_.load();
  out.changed_count = changed_count_.load();
  const std::lock_guard lock(mutex_);
  out.errors = errors_;
  out.fatal = fatal_;
  return out;
}

}  // namespace volferry::session
