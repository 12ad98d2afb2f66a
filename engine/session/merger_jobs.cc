// SPDX-License-Identifier: Apache-2.0
// Content jobs: images, the window of open jobs, and what their outcomes mean.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "engine/io/file.h"
#include "engine/session/convert.h"
#include "engine/session/item_code.h"
#include "engine/session/merger.h"
#include "engine/session/place.h"
#include "engine/session/sizes.h"
#include "engine/session/temp_name.h"

namespace volferry::session {

Status Merger::image_entry(const wire::DirList& list) {
  if (list.entries.size() != 1 || !stack_.empty())
    return fail_with(Code::kProtocol, "a bad image list");
  const wire::EntryMeta& want = list.entries[0].meta;
  parts_.tally.files_total.fetch_add(1);
  parts_.tally.bytes_total.fetch_add(want.size);
  DestDirPtr dir = parts_.keeper.begin(0, nullptr, "", nullptr);
  stack_.push_back(dir);
  dir->node = parts_.tree.root();
  dir->failed = true;  // the directory that holds the image is not ours to change
  auto job = std::make_shared<FileJob>();
  job->dir = dir;
  job->name = image_->name;
  job->want = want;
  job->device = image_->device;
  job->content_only = image_->device || want.type != wire::EntryType::kFile;
  job->compare_only = read_only();
  VF_ASSIGN(const io::DirFd fd, parts_.tree.open(dir->node));
  auto old = io::stat_at(fd->get(), image_->name);
  if (old && image_->device) old->size = image_->size;
  if (old) {
    job->old = Present{*old, {}};
    if (!job->content_only) {
      VF_ASSIGN(*job->old, parts_.installer.read(fd->get(), image_->name, *old));
      job->diff = parts_.installer.compare(want, *job->old);
      job->new_inode = false;
    }
    const std::string temp = temp_name(image_->name);
    job->resume = !image_->device && io::stat_at(fd->get(), temp).has_value();
  }
  parts_.keeper.add_file(*dir);
  parts_.keeper.file_done(dir);
  {
    const std::lock_guard lock(mutex_);
    ++open_jobs_;
  }
  if (image_->device && image_->size < want.size) {
    job_done(job, Outcome::kFailed);
    return fail_with(Code::kDestinationTooSmall,
                     "the destination device holds " + std::to_string(image_->size) +
                         " bytes, the source " + std::to_string(want.size));
  }
  const bool same_size = old && (image_->device || old->size == want.size);
  const bool quick = !job->content_only && same_size && mtime_of(want) == old->mtime;
  const bool compare = verify_ || parts_.options.checksum;
  if (quick && !compare) {
    job_done(job, Outcome::kSame);
  } else if (read_only() && !same_size) {
    if (verify_ && !old) {
      report_difference(image_->name, {"missing"});
      job_done(job, Outcome::kFailed);
    } else {
      job_done(job, Outcome::kDiffers);
    }
  } else {
    start(std::move(job));
    content_->dir_listed();
  }
  return {};
}

void Merger::start(FileJobPtr job) {
  {
    std::unique_lock lock(mutex_);
    if (open_jobs_ > kMaxOpenFiles) {
      while (open_jobs_ > kResumeOpenFiles && !parts_.tally.stopped())
        jobs_changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
  }
  if (parts_.tally.stopped() || (parts_.tally.is_full() && !job->compare_only)) {
    return job_done(job, Outcome::kFailed);
  }
  content_->fetch(std::move(job));
}

Status Merger::update_metadata(const FileJob& job) {
  if (!job.diff.any()) return {};
  VF_ASSIGN(const io::DirFd fd, parts_.tree.open(job.dir->node));
  return parts_.installer.apply(-1, fd->get(), job.name, job.want, *job.old);
}

void Merger::job_done(const FileJobPtr& job, Outcome outcome) {
  const std::string path = job->path();
  const bool existed = job->old.has_value();
  const std::uint64_t group = job->want.hardlink_group;
  bool good = true;
  switch (outcome) {
    case Outcome::kInstalled:
      parts_.tally.files_transferred.fetch_add(1);
      report_change(path, job->want, !existed, true,
                    existed && job->old->meta.size != job->want.size, job->diff);
      break;
    case Outcome::kSame:
      if (verify_ && job->diff.any()) report_difference(path, kinds_of(job->diff));
      if (job->diff.any()) report_change(path, job->want, false, false, false, job->diff);
      if (!job->compare_only && existed) {
        if (!job->content_only) parts_.installer.count_owner(job->want, job->old->meta);
        if (auto updated = update_metadata(*job); !updated) {
          parts_.tally.destination_error(path, updated.error());
          good = false;
        }
      }
      parts_.tally.matched_bytes.fetch_add(job->compare_only ? 0 : job->want.size);
      break;
    case Outcome::kDiffers:
      if (verify_) {
        std::vector<std::string> kinds{
            existed && job->old->meta.size != job->want.size ? "size" : "content"};
        for (std::string& kind : kinds_of(job->diff)) kinds.push_back(std::move(kind));
        report_difference(path, std::move(kinds));
      } else {
        parts_.tally.files_transferred.fetch_add(1);
        report_change(path, job->want, !existed, true,
                      existed && job->old->meta.size != job->want.size, job->diff);
      }
      break;
    case Outcome::kFailed:
      good = false;
      break;
  }
  parts_.tally.files_done.fetch_add(1);
  const std::uint64_t counted = job->counted.load();
  if (counted < job->want.size) parts_.tally.bytes_done.fetch_add(job->want.size - counted);
  if (group != 0 && !read_only())
    good ? parts_.links.leader_ready(group) : parts_.links.leader_failed(group);
  parts_.keeper.file_done(job->dir);
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    --open_jobs_;
    wake = open_jobs_ == 0 || open_jobs_ == kResumeOpenFiles;
  }
  if (wake) jobs_changed_.notify_all();
}

}  // namespace volferry::session
