// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/log.h"
#include "engine/io/queue.h"

namespace volferry::session {

// What a job may use of the worker that runs it.
class Worker {
 public:
  // `pool`: the one whose slots the queue knows by number.
  Worker(unsigned index, std::unique_ptr<io::IoQueue> queue, const base::BufferPool* pool)
      : index_(index), queue_(std::move(queue)), pool_(pool) {}

  unsigned index() const { return index_; }
  io::IoQueue& queue() { return *queue_; }
  // A scratch block of at least `bytes`, kept for the next job; its content is lost between jobs.
  std::uint8_t* scratch(std::size_t bytes);
  // Writes `data` at `offset` without waiting, for descriptors with O_DIRECT; `done` runs later on
  // this worker.
  void write_later(int fd, std::uint64_t offset, base::Buffer data, std::size_t begin,
                   std::size_t length, std::function<void(Status)> done);

 private:
  unsigned index_;
  std::unique_ptr<io::IoQueue> queue_;
  const base::BufferPool* pool_;
  base::Buffer scratch_;
};

// A fixed set of threads that run jobs. Two lanes: `kUrgent` jobs, which finish work already begun,
// go first. The number of queued jobs is bounded by the protocol's windows, so `post` never waits
// (a reader thread may call it).
class Workers {
 public:
  enum class Lane : unsigned char { kUrgent, kNormal };
  using Job = std::function<void(Worker&)>;

  struct Options {
    unsigned threads = 2;
    io::Backend backend = io::Backend::kThreads;
    unsigned depth = 16;
    const base::BufferPool* pool = nullptr;
  };
  static Result<std::unique_ptr<Workers>> create(const Options& options);
  ~Workers();  // stop()

  void post(Lane lane, Job job);
  // A job that only this worker may run: jobs of one key keep their order.
  void post_to(unsigned worker, Job job);
  unsigned count() const { return static_cast<unsigned>(threads_.size()); }
  // Waits until nothing is queued and nothing runs.
  void drain();
  // Drops what is queued, waits for what runs.
  void stop();

 private:
  Workers() = default;
  void run(unsigned index, std::unique_ptr<io::IoQueue> queue, const base::BufferPool* pool);
  bool take(unsigned index, bool wait, Job& job);

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Job> urgent_;
  std::deque<Job> normal_;
  std::vector<std::deque<Job>> own_;
  std::condition_variable idle_;
  unsigned sleeping_ = 0;  // workers that wait for a job with nothing in flight
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace volferry::session
