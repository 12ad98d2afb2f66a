// SPDX-License-Identifier: Apache-2.0
#include "engine/session/landing.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace volferry::session {

namespace {
// Far more passes than any chain of full disks and overflowing lists of extras needs.
constexpr std::uint32_t kMaxPasses = 100;
}  // namespace

Landing::Landing(Volume& destination, wire::RootKind source, const VolumeOptions& options,
                 const Settings& settings, Tally& tally)
    : destination_(destination),
      options_(options),
      tally_(tally),
      installer_(options, tally),
      remover_(options, tally, installer_.can_override()),
      pace_(options.durable) {
  const bool image = source != wire::RootKind::kDirectory;
  root_missing_ = !image && destination.kind == wire::RootKind::kMissing;
  const int root = image || root_missing_ ? destination.parent.get() : destination.fd.get();
  tree_ = std::make_unique<io::DirTree>(base::UniqueFd(::fcntl(root, F_DUPFD_CLOEXEC, 0)), 256);
  if (image) {
    tally.set_image(destination.path);
    image_ = Merger::Image{destination.name, destination.kind == wire::RootKind::kBlockDevice,
                           destination.size};
  }
  Targets::Parts parts{*tree_, options_, installer_, remover_, tally_, pace_};
  parts.direct_writes = settings.direct == DirectChoice::kAuto;
  parts.always_direct = settings.direct == DirectChoice::kOn;
  targets_ = std::make_unique<Targets>(parts);
  keeper_ =
      std::make_unique<DirKeeper>(*tree_, options_, installer_, tally_, [this](std::uint32_t dir) {
        if (released_) released_(dir);
      });
}

Landing::~Landing() = default;

void Landing::restore() { keeper_->restore_all(); }

Status Landing::pass(ListFeed& feed, const ContentFactory& make_content, wire::BeginPass begin,
                     bool verify) {
  tally_.files_total = 0;
  tally_.bytes_total = 0;
  tally_.dirs_total = 0;
  tally_.files_done = 0;
  tally_.bytes_done = 0;
  tally_.list_complete = false;
  keeper_->set_read_only(verify || options_.read_only());
  VF_TRY(feed.begin(begin));
  Links links(*tree_, options_, *keeper_, remover_, tally_);
  Merger merger(
      {*tree_, options_, installer_, *keeper_, links, extras_, remover_, tally_, root_missing_},
      verify, image_);
  const std::unique_ptr<ContentSource> content = make_content(merger);
  merger.set_content(*content);
  released_ = [&content](std::uint32_t dir) { content->dir_released(dir); };
  const auto merge = [&]() -> Status {
    for (;;) {
      VF_ASSIGN(std::optional<wire::DirList> list, feed.next());
      if (!list) break;
      VF_TRY(merger.on_list(*list));
    }
    tally_.list_ends();
    return merger.finish();
  };
  Status merged = merge();
  // The failure that stopped the session, if any, is the one to tell.
  if (!merged && merged.error().code != Code::kCancelled) tally_.fail(merged.error());
  content->quiesce();
  return merged;
}

Status Landing::run(ListFeed& feed, const ContentFactory& make_content,
                    const std::function<void(ProgressSnapshot::Phase)>& phase) {
  std::uint32_t number = 0;
  for (bool again = true; again;) {
    again = false;
    phase(ProgressSnapshot::Phase::kSync);
    VF_TRY(pass(feed, make_content, {number, wire::PassKind::kSync}, options_.verify_only));
    std::uint64_t removed = 0;
    if (!extras_.empty()) {
      if (tally_.source_errors.load() > 0) {
        tally_.warning("", "nothing was deleted, because the source could not be read completely");
      } else {
        phase(ProgressSnapshot::Phase::kDelete);
        removed =
            extras_.remove_all(*tree_, remover_, tally_, options_.read_only(), options_.itemize);
        again = extras_.overflow() && removed > 0 && !options_.read_only();
      }
      extras_ = {};
    }
    if (const std::optional<Error> full = tally_.full()) {
      // Room was made: what found none before gets another try.
      if (removed == 0) {
        tally_.fail(*full);
        return std::unexpected(*full);
      }
      tally_.clear_full();
      again = true;
    }
    if (++number >= kMaxPasses)
      return fail_with(Code::kInternal, "the passes do not come to an end");
  }
  if (options_.read_only()) return {};
  if (const std::uint64_t skipped = tally_.owner_skipped.load(); skipped > 0) {
    tally_.warning("", "owner of " + std::to_string(skipped) +
                           " items not set: run as root or with CAP_CHOWN to keep owners");
  }
  if (options_.durable) {
    phase(ProgressSnapshot::Phase::kFlush);
    const int fd = destination_.fd ? destination_.fd.get() : destination_.parent.get();
    const bool device = destination_.kind == wire::RootKind::kBlockDevice;
    if ((device ? ::fsync(fd) : ::syncfs(fd)) != 0) {
      Error error{Code::kDestinationWrite, errno, "flushing " + destination_.path};
      if (errno == ENOSPC || errno == EDQUOT) error.code = Code::kDestinationFull;
      tally_.fail(error);
      return std::unexpected(error);
    }
  }
  if (options_.verify_after) {
    phase(ProgressSnapshot::Phase::kVerify);
    // The destination is to be read again from the device, not from memory that was just written;
    // only clean pages can be dropped.
    (void)::syncfs(destination_.fd ? destination_.fd.get() : destination_.parent.get());
    targets_->reread_from_device();
    VF_TRY(pass(feed, make_content, {number, wire::PassKind::kVerify}, true));
  }
  return {};
}

}  // namespace volferry::session
