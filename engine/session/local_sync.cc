// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_sync.h"

#include <chrono>
#include <thread>
#include <utility>

#include "engine/base/bounded_queue.h"
#include "engine/session/landing.h"
#include "engine/session/local_content.h"
#include "engine/session/monitor.h"
#include "engine/session/runtime.h"
#include "engine/session/source_tree.h"
#include "engine/session/volume.h"

namespace volferry::session {

namespace {

// The source is walked by a thread of its own, so that both ends are looked at at once.
class LocalFeed final : public ListFeed, public ListSink {
 public:
  LocalFeed(SourceTree& source, Tally& source_tally, Tally& tally)
      : source_(source), source_tally_(source_tally), tally_(tally) {}
  ~LocalFeed() override { stop(); }

  Status begin(const wire::BeginPass& /*pass*/) override {
    stop();
    chunks_ = std::make_unique<base::BoundedQueue<wire::DirList>>(kChunks);
    walked_ = {};
    walker_ = std::thread([this] {
      walked_ = source_.walk(*this);
      chunks_->close();
    });
    return {};
  }
  Result<std::optional<wire::DirList>> next() override {
    std::optional<wire::DirList> list = chunks_->pop();
    if (!list) {
      walker_.join();
      tally_.source_errors += source_tally_.source_errors.exchange(0);
      if (!walked_) return std::unexpected(walked_.error());
    }
    return list;
  }
  Status on_list(wire::DirList list) override {
    if (!chunks_->push(std::move(list))) return fail_with(Code::kCancelled, "stopped");
    return {};
  }
  void stop() {
    if (chunks_ != nullptr) chunks_->abort();
    if (walker_.joinable()) walker_.join();
  }
  void wake() {
    if (chunks_ != nullptr) chunks_->abort();
  }

 private:
  static constexpr std::size_t kChunks = 64;
  SourceTree& source_;
  Tally& source_tally_;
  Tally& tally_;
  std::unique_ptr<base::BoundedQueue<wire::DirList>> chunks_;
  std::thread walker_;
  Status walked_;
};

// The walk's counters are its own; its reports belong to the session.
class Forward final : public Observer {
 public:
  explicit Forward(Tally& tally) : tally_(tally) {}
  void on_error(const ItemError& error) override {
    if (error.changed) {
      tally_.item_changed(error.path, error.what);
    } else {
      tally_.item_error(error.path, error.os_errno, error.what);
    }
  }

 private:
  Tally& tally_;
};

struct Ends {
  Volume source;
  Volume destination;
  base::UniqueFd lock;
};

Result<Ends> open_ends(const std::string& source, const std::string& destination,
                       const VolumeOptions& options) {
  Ends ends;
  VF_ASSIGN(ends.source, open_source(source, ""));
  if (options.verify_only) {
    VF_ASSIGN(ends.destination, open_source(destination, ""));
  } else {
    VF_ASSIGN(ends.destination, open_destination(destination, ""));
  }
  VF_TRY(check_pairing(ends.source.kind, ends.destination.kind, options.verify_only));
  VF_TRY(check_apart(ends.source, ends.destination));
  if (options.read_only()) return ends;
  VF_TRY(create_destination(ends.destination, ends.source.kind));
  VF_ASSIGN(ends.lock, lock_destination(ends.destination, std::chrono::milliseconds(0)));
  return ends;
}

}  // namespace

Summary run_local(const std::string& source, const std::string& destination,
                  const SyncOptions& sync_options, bool verify_only, Observer& observer,
                  base::Logger& logger, StopFlag& stop) {
  Tally tally(observer);
  std::string io_name;
  std::uint64_t peak_buffers = 0;
  const auto work = [&]() -> Status {
    wire::Start start;
    start.flags = start_flags(sync_options, verify_only);
    for (const FilterRule& rule : sync_options.filters)
      start.filters.push_back({rule.include, rule.pattern});
    const VolumeOptions options = volume_options(start);
    VF_ASSIGN(Ends ends, open_ends(source, destination, options));
    VF_ASSIGN(Runtime runtime, Runtime::create(sync_options, false, logger));
    io_name = runtime.io_name();
    Forward forward(tally);
    Tally source_tally(forward);
    SourceTree tree(std::move(ends.source.fd), ends.source.path, options, source_tally);
    Landing landing(ends.destination, ends.source.kind, options, {sync_options.direct}, tally);
    std::unique_ptr<base::RateLimiter> limiter;
    if (sync_options.bandwidth_limit > 0)
      limiter = std::make_unique<base::RateLimiter>(sync_options.bandwidth_limit);
    LocalFeed feed(tree, source_tally, tally);
    Monitor monitor(
        tally, stop,
        [&](const Error& error) {
          source_tally.fail(error);
          feed.wake();
        },
        [&](ProgressSnapshot::Phase phase) { tally.progress(phase); });
    const auto content = [&](JobSink& sink) -> std::unique_ptr<ContentSource> {
      return std::make_unique<LocalContent>(tree, *runtime.workers, *runtime.work_pool, options,
                                            landing.targets(), tally, limiter.get(), sink);
    };
    Status done = landing.run(feed, content,
                              [&](ProgressSnapshot::Phase phase) { monitor.set_phase(phase); });
    runtime.workers->stop();
    peak_buffers = runtime.peak_buffers();
    landing.restore();
    return done;
  };
  const auto begin = std::chrono::steady_clock::now();
  if (auto done = work(); !done) tally.fail(done.error());
  Summary summary = tally.summary();
  summary.io = io_name;
  summary.peak_buffers = peak_buffers;
  summary.elapsed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

}  // namespace volferry::session
