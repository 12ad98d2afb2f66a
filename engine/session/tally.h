// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/observer.h"
#include "engine/summary.h"

namespace volferry::session {

// Counts and reports what one session does, from all its threads. The first fatal error wins and
// makes `stopped` true, which every loop of the session watches.
class Tally {
 public:
  // `observer` outlives the tally.
  explicit Tally(Observer& observer) : observer_(observer) {}

  std::atomic<std::uint64_t> files_total{0};
  std::atomic<std::uint64_t> files_done{0};
  std::atomic<std::uint64_t> files_transferred{0};
  std::atomic<std::uint64_t> files_deleted{0};
  std::atomic<std::uint64_t> dirs_total{0};
  std::atomic<std::uint64_t> bytes_total{0};
  std::atomic<std::uint64_t> bytes_done{0};
  std::atomic<std::uint64_t> literal_bytes{0};
  std::atomic<std::uint64_t> matched_bytes{0};
  std::atomic<std::uint64_t> zero_bytes{0};
  std::atomic<std::uint64_t> owner_skipped{0};
  std::atomic<std::uint64_t> differences{0};
  // What the channel has carried so far, for progress; remote sessions only.
  std::atomic<std::uint64_t> wire_sent{0};
  std::atomic<std::uint64_t> wire_received{0};
  // Items of the source that could not be read or listed: deletion is then refused.
  std::atomic<std::uint64_t> source_errors{0};
  std::atomic<bool> list_complete{false};
  // The list has been seen to its end; the first time counts for the summary.
  void list_ends();

  // An item failed; the others go on. A DestinationFull failure is also remembered apart.
  void item_error(std::string path, int os_errno, std::string what);
  void item_error(std::string path, const Error& error);
  // A call at the destination failed: a full volume is remembered (`full`) and, like a broken one,
  // concerns all items; anything else is that item's error.
  void destination_error(std::string path, const Error& error);
  // The source of an item cannot be read: counted, so that nothing is deleted.
  void source_error(std::string path, int os_errno, std::string what);
  // The volume is one file or device: an error of its item is the session's.
  void set_image(std::string destination);
  // The first "no space" error; `clear_full` after room was made.
  std::optional<Error> full() const;
  bool is_full() const { return full_flag_.load(std::memory_order_relaxed); }
  void clear_full();
  // An item vanished or kept changing while it was read.
  void item_changed(std::string path, std::string what);
  void warning(std::string path, std::string what);
  void change(const ItemChangeEvent& event);
  void difference(const DifferenceEvent& event);
  void progress(ProgressSnapshot::Phase phase);

  void fail(Error error);
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  std::optional<Error> fatal() const;
  std::uint64_t errors() const { return error_count_.load(); }
  std::uint64_t changed() const { return changed_count_.load(); }

  // Everything above as a summary; wire figures and times are the caller's.
  Summary summary() const;

 private:
  void remember(ItemError item);

  Observer& observer_;
  mutable std::mutex mutex_;
  std::vector<ItemError> errors_;
  std::optional<Error> fatal_;
  std::optional<Error> full_;
  std::atomic<bool> full_flag_{false};
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> list_milliseconds_{-1};
  std::atomic<bool> image_{false};
  std::string image_path_;  // set before there are other threads
  std::atomic<std::uint64_t> error_count_{0};
  std::atomic<std::uint64_t> changed_count_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace volferry::session
