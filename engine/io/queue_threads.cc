// SPDX-License-Identifier: Apache-2.0
// The thread backend: blocking calls on a few workers, callbacks on the owner's thread.
//
// Requests go through `jobs_` to the workers and come back through `finished_`, both under one
// mutex; the owner moves `finished_` as a whole to `ready_`, which only it touches, and runs
// callbacks from there one by one. A callback that submits only appends to `jobs_`, so that it
// never waits. Signals are made only where somebody sleeps: at depth 16 most hand-overs then cost
// no system call.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/io/file.h"
#include "engine/io/internal/backends.h"
#include "engine/io/internal/request.h"

namespace volferry::io::internal {
namespace {

// Carries a request out on the calling thread, EINTR and short transfers repeated.
Result<std::size_t> perform(const IoRequest& request) {
  if (request.op == IoOp::kRead) {
    return read_full(request.fd, request.data, request.length, request.offset);
  }
  if (request.op == IoOp::kWrite) {
    VF_TRY(write_full(request.fd, request.data, request.length, request.offset));
    return request.length;
  }
  int result = 0;
  do {
    result = ::fdatasync(request.fd);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return std::unexpected(request_error(request, errno));
  return 0;
}

class ThreadQueue final : public IoQueue {
 public:
  explicit ThreadQueue(unsigned depth) : depth_(depth) {}
  ~ThreadQueue() override;

  Status open(unsigned threads);

  void submit(IoRequest& request) override;
  unsigned wait(unsigned min_complete) override;
  unsigned in_flight() const override { return active_; }
  unsigned depth() const override { return depth_; }
  Backend backend() const override { return Backend::kThreads; }

 private:
  struct Completion {
    IoRequest* request = nullptr;
    Result<std::size_t> outcome = 0;
  };

  void work();
  void collect(unsigned min_finished);
  void dispatch_one();

  const unsigned depth_;
  // Owner's thread only.
  std::deque<Completion> ready_;
  unsigned active_ = 0;     // submitted and not called back
  unsigned callbacks_ = 0;  // callbacks on the stack

  std::mutex mutex_;  // guards what follows
  std::condition_variable job_added_;
  std::condition_variable job_finished_;
  std::deque<IoRequest*> jobs_;
  std::deque<Completion> finished_;
  unsigned idle_workers_ = 0;
  unsigned owner_wants_ =
      0;  // the owner sleeps until so many stand in `finished_`; 0: it does not sleep
  bool stopping_ = false;

  std::vector<std::thread> workers_;
};

Status ThreadQueue::open(unsigned threads) {
  const unsigned wanted = std::max(1U, std::min(threads, depth_));
  try {
    for (unsigned i = 0; i < wanted; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    // Fewer workers than wanted are slower, none is a failure.
    if (workers_.empty()) return fail_sys("start of an I/O thread", error.code().value());
  }
  return {};
}

ThreadQueue::~ThreadQueue() {
  drain();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  job_added_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadQueue::submit(IoRequest& request) {
  VF_CHECK(request.done != nullptr, "a request without a callback");
  if (callbacks_ == 0) {
    while (active_ >= depth_) wait(1);
  }
  ++active_;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&request);
    wake = idle_workers_ > 0;
  }
  if (wake) job_added_.notify_one();
}

unsigned ThreadQueue::wait(unsigned min_complete) {
  unsigned ran = 0;
  for (bool asked = false;; asked = true) {
    while (!ready_.empty()) {
      dispatch_one();
      ++ran;
    }
    const unsigned missing = std::min(min_complete > ran ? min_complete - ran : 0, active_);
    if (missing == 0 && asked) return ran;
    collect(missing);
  }
}

// Moves what has finished to `ready_`, after waiting until that is at least `min_finished`.
void ThreadQueue::collect(unsigned min_finished) {
  std::unique_lock lock(mutex_);
  owner_wants_ = min_finished;
  job_finished_.wait(lock, [&] { return finished_.size() >= min_finished; });
  owner_wants_ = 0;
  ready_.swap(finished_);
}

void ThreadQueue::dispatch_one() {
  Completion completion = std::move(ready_.front());
  ready_.pop_front();
  --active_;
  ++callbacks_;
  completion.request->done(*completion.request, std::move(completion.outcome));
  --callbacks_;
}

void ThreadQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_workers_;
    job_added_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    --idle_workers_;
    if (jobs_.empty()) return;
    IoRequest* const request = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    Completion completion{request, perform(*request)};
    lock.lock();
    finished_.push_back(std::move(completion));
    // Under the lock: the owner may destroy the queue as soon as it has seen the last completion.
    if (owner_wants_ > 0 && finished_.size() >= owner_wants_) job_finished_.notify_one();
  }
}

}  // namespace

Result<std::unique_ptr<IoQueue>> make_thread_queue(const IoQueueOptions& options) {
  auto queue = std::make_unique<ThreadQueue>(options.depth);
  VF_TRY(queue->open(options.threads));
  return queue;
}

}  // namespace volferry::io::internal
