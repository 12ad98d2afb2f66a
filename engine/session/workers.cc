// SPDX-License-Identifier: Apache-2.0
#include "engine/session/workers.h"

#include <future>

namespace volferry::session {

std::uint8_t* Worker::scratch(std::size_t bytes) {
  if (scratch_.capacity() < bytes) scratch_ = base::Buffer::heap(bytes);
  return scratch_.data();
}

namespace {
// One write in flight: owns its buffer until the completion.
struct PendingWrite {
  io::IoRequest request;
  base::Buffer data;
  std::function<void(Status)> done;
};
}  // namespace

void Worker::write_later(int fd, std::uint64_t offset, base::Buffer data, std::size_t begin,
                         std::size_t length, std::function<void(Status)> done) {
  auto* pending = new PendingWrite{{}, std::move(data), std::move(done)};
  pending->request.op = io::IoOp::kWrite;
  pending->request.fd = fd;
  pending->request.offset = offset;
  pending->request.data = pending->data.data() + begin;
  pending->request.length = length;
  pending->request.slot = pending->data.pool() == pool_ ? pending->data.slot() : -1;
  pending->request.done = [pending](io::IoRequest&, Result<std::size_t> transferred) {
    const std::unique_ptr<PendingWrite> owned(pending);
    owned->data = {};
    if (transferred) {
      owned->done({});
    } else {
      owned->done(std::unexpected(std::move(transferred).error()));
    }
  };
  queue_->submit(pending->request);
}

Result<std::unique_ptr<Workers>> Workers::create(const Options& options) {
  std::unique_ptr<Workers> workers(new Workers());
  workers->own_.resize(options.threads);
  // Each queue is made on its own thread, because a ring may only be used by the thread that made
  // it.
  std::vector<std::future<Status>> started;
  for (unsigned i = 0; i < options.threads; ++i) {
    std::promise<Status> promise;
    started.push_back(promise.get_future());
    workers->threads_.emplace_back(
        [&self = *workers, i, options, promise = std::move(promise)]() mutable {
          io::IoQueueOptions queue_options;
          queue_options.backend = options.backend;
          queue_options.depth = options.depth;
          queue_options.pool = options.pool;
          auto queue = io::make_io_queue(queue_options);
          if (!queue) {
            promise.set_value(std::unexpected(std::move(queue).error()));
            return;
          }
          promise.set_value({});
          self.run(i, std::move(*queue), options.pool);
        });
  }
  for (auto& future : started) VF_TRY(future.get());
  return workers;
}

Workers::~Workers() { stop(); }

void Workers::post(Lane lane, Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    (lane == Lane::kUrgent ? urgent_ : normal_).push_back(std::move(job));
  }
  ready_.notify_one();
}

void Workers::post_to(unsigned worker, Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    own_[worker % own_.size()].push_back(std::move(job));
  }
  ready_.notify_all();
}

bool Workers::take(unsigned index, bool wait, Job& job) {
  std::unique_lock lock(mutex_);
  const auto any = [&] {
    return stopping_ || !own_[index].empty() || !urgent_.empty() || !normal_.empty();
  };
  if (wait && !any()) {
    ++sleeping_;
    idle_.notify_all();
    ready_.wait(lock, any);
    --sleeping_;
  }
  for (std::deque<Job>* lane : {&own_[index], &urgent_, &normal_}) {
    if (lane->empty()) continue;
    job = std::move(lane->front());
    lane->pop_front();
    return true;
  }
  return false;
}

void Workers::run(unsigned index, std::unique_ptr<io::IoQueue> queue,
                  const base::BufferPool* pool) {
  Worker worker(index, std::move(queue), pool);
  for (;;) {
    Job job;
    // Completions of this worker's ring are only seen here: never sleep for a job while writes are
    // in flight.
    const bool busy = worker.queue().in_flight() > 0;
    if (take(index, !busy, job)) {
      job(worker);
      if (worker.queue().in_flight() > 0) worker.queue().wait(0);
      continue;
    }
    if (busy) {
      worker.queue().wait(1);
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) break;
  }
  worker.queue().drain();
}

void Workers::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] {
    bool queued = !urgent_.empty() || !normal_.empty();
    for (const auto& lane : own_) queued = queued || !lane.empty();
    return stopping_ || (!queued && sleeping_ == threads_.size());
  });
}

void Workers::stop() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto* lane : {&urgent_, &normal_}) {
      for (Job& job : *lane) dropped.push_back(std::move(job));
      lane->clear();
    }
    for (auto& lane : own_) {
      for (Job& job : lane) dropped.push_back(std::move(job));
      lane.clear();
    }
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace volferry::session
