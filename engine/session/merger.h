// SPDX-License-Identifier: Apache-2.0
// Merges the source's list, directory by directory in the order of names, with what the destination
// has, and acts: makes directories, links and special files, corrects metadata, starts the fetching
// of content, notes what is extra. In a dry run or verify it only reports. Runs on one thread;
// job_done may come from any.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/session/extras.h"
#include "engine/session/file_job.h"
#include "engine/session/links.h"

namespace volferry::session {

class Merger final : public JobSink {
 public:
  struct Parts {
    io::DirTree& tree;
    const VolumeOptions& options;
    Installer& installer;
    DirKeeper& keeper;
    Links& links;
    Extras& extras;
    Remover& remover;
    Tally& tally;
    bool root_missing = false;  // read-only modes: there is no destination at all
  };
  // The destination as one file or device: a name in the root of Parts::tree.
  struct Image {
    std::string name;
    bool device = false;
    std::uint64_t size = 0;  // of a device
  };
  Merger(const Parts& parts, bool verify, std::optional<Image> image)
      : parts_(parts), verify_(verify), image_(std::move(image)) {}
  void set_content(ContentSource& content) { content_ = &content; }

  // One chunk of the list. kProtocol for a list that breaks the rules of wire::DirList.
  Status on_list(const wire::DirList& list);
  // The list is over: waits until all jobs are done. kCancelled where the session stops first.
  Status finish();

  void job_done(const FileJobPtr& job, Outcome outcome) override;

 private:
  bool read_only() const { return verify_ || parts_.options.read_only(); }

  Status begin_directory(const wire::DirList& list);
  void open_directory(const wire::DirList& list, const DestDirPtr& parent);
  void end_directory(bool complete);
  void entry(const wire::Entry& entry, std::uint32_t index);
  std::optional<io::Metadata> take_old(const std::string& name);
  void extra(const std::string& name);
  void directory_entry(const wire::Entry& entry, const std::optional<io::Metadata>& old);
  void special_entry(const wire::Entry& entry, const std::optional<io::Metadata>& old);
  void file_entry(const wire::Entry& entry, std::uint32_t index,
                  const std::optional<io::Metadata>& old);
  bool linked_entry(const wire::Entry& entry, const std::optional<io::Metadata>& old);
  Status make_special(const wire::Entry& entry);
  void start(FileJobPtr job);
  Status image_entry(const wire::DirList& list);
  Status update_metadata(const FileJob& job);

  void report_change(const std::string& path, const wire::EntryMeta& want, bool is_new,
                     bool content, bool size, const MetaDiff& diff, char kind = '\0',
                     const std::string& target = {});
  void report_difference(const std::string& path, std::vector<std::string> kinds);
  std::vector<std::string> kinds_of(const MetaDiff& diff) const;

  Parts parts_;
  const bool verify_;
  const std::optional<Image> image_;
  ContentSource* content_ = nullptr;

  std::vector<DestDirPtr> stack_;  // the directory being merged and those above it
  io::DirFd fd_;                   // of the directory being merged; null where it does not exist
  io::NameList names_;
  std::size_t next_name_ = 0;
  std::uint32_t next_index_ = 0;
  std::string last_name_;
  bool open_list_ = false;  // more chunks of the directory must follow
  std::vector<std::string> extra_names_;
  std::vector<std::string> stale_temps_;
  std::unordered_set<std::string> resumed_temps_;

  std::mutex mutex_;
  std::condition_variable jobs_changed_;
  std::size_t open_jobs_ = 0;
};

}  // namespace volferry::session
