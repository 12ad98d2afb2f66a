// SPDX-License-Identifier: Apache-2.0
// Finds out whether io_uring works here.
//
// A container's seccomp profile may answer io_uring_setup with EPERM (containerd 2) or ENOSYS
// (podman) or kill the caller, so a forked child tries it: ring, one no-op, the opcodes that the
// backend needs, a registered buffer. The child reports through a page shared with its parent, step
// by step, because a killed child has no last words; it calls nothing but system calls, since the
// parent may have threads.
#include <fmt/format.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "engine/base/unique_fd.h"
#include "engine/io/queue.h"

namespace volferry::io {
namespace {

// A probe takes under a millisecond; one that hangs is killed by its own alarm.
constexpr unsigned kProbeSeconds = 5;
constexpr int kPatienceMilliseconds = 2 * 1000 * kProbeSeconds;
constexpr std::size_t kPageBytes = 4096;
constexpr unsigned kProbedOps = 64;

enum class Step : int { kSetup, kNop, kOpcodes, kRegister, kDone };

// The step that the child was at last, and the errno that ended it there.
struct Report {
  volatile Step step = Step::kSetup;
  volatile int error = 0;
};

// Unmaps the shared page.
class SharedReport {
 public:
  SharedReport()
      : page_(::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)) {}
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;
  ~SharedReport() {
    if (valid()) ::munmap(page_, kPageBytes);
  }
  bool valid() const { return page_ != MAP_FAILED; }
  Report& report() const { return *static_cast<Report*>(page_); }

 private:
  void* page_;
};

// No-op through the ring: catches profiles that allow io_uring_setup and refuse io_uring_enter. 0
// or an errno.
int try_nop(io_uring& ring) {
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring);
  if (sqe == nullptr) return EIO;
  io_uring_prep_nop(sqe);
  if (const int result = io_uring_submit_and_wait(&ring, 1); result < 0) return -result;
  io_uring_cqe* cqe = nullptr;
  if (const int result = io_uring_peek_cqe(&ring, &cqe); result < 0) return -result;
  const int result = cqe->res;
  io_uring_cqe_seen(&ring, cqe);
  return -result;
}

int try_opcodes(io_uring& ring) {
  alignas(io_uring_probe)
      std::array<std::byte, sizeof(io_uring_probe) + kProbedOps * sizeof(io_uring_probe_op)>
          memory{};
  auto* const probe = reinterpret_cast<io_uring_probe*>(memory.data());
  if (const int result = io_uring_register_probe(&ring, probe, kProbedOps); result < 0) {
    return -result;
  }
  for (const int op : {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC, IORING_OP_READ_FIXED,
                       IORING_OP_WRITE_FIXED}) {
    if (io_uring_opcode_supported(probe, op) == 0) return EOPNOTSUPP;
  }
  return 0;
}

// As the queue does it: an empty table, then one entry.
int try_register(io_uring& ring, void* page) {
  if (const int result = io_uring_register_buffers_sparse(&ring, 1); result < 0) return -result;
  const iovec memory{page, kPageBytes};
  const int result = io_uring_register_buffers_update_tag(&ring, 0, &memory, nullptr, 1);
  return result == 1 ? 0 : std::max(-result, 1);
}

[[noreturn]] void probe_in_child(Report& report) {
  // Being killed by a filter is an answer here, not a crash to be kept.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGSYS, SIG_DFL);
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kProbeSeconds);

  io_uring ring{};
  const auto at = [&](Step step, int error) {
    report.error = error;
    if (error != 0) ::_exit(1);
    report.step = step;
  };
  at(Step::kNop, -io_uring_queue_init(4, &ring, 0));
  at(Step::kOpcodes, try_nop(ring));
  at(Step::kRegister, try_opcodes(ring));
  void* const page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  at(Step::kDone, page == MAP_FAILED ? ENOMEM : try_register(ring, page));
  ::_exit(0);
}

const char* step_name(Step step) {
  switch (step) {
    case Step::kSetup:
      return "io_uring_setup";
    case Step::kNop:
      return "io_uring_enter";
    case Step::kOpcodes:
      return "io_uring's read, write and fsync";
    case Step::kRegister:
      return "io_uring_register of a buffer";
    case Step::kDone:
      return "io_uring";
  }
  return "?";
}

std::string errno_name(int error) {
  const char* const name = ::strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

struct Finding {
  Backend backend = Backend::kThreads;
  int os_errno = 0;
  std::string text;
};

Finding judge(const Report& report, int wait_status) {
  const Step step = report.step;
  if (step == Step::kDone)
    return {Backend::kUringFixed, 0, "io_uring works, with registered buffers"};
  std::string what;
  if (report.error != 0) {
    what = fmt::format("{} answers {}", step_name(step), errno_name(report.error));
  } else if (WIFSIGNALED(wait_status)) {
    const char* const name = ::sigabbrev_np(WTERMSIG(wait_status));
    what = fmt::format("{} is killed by SIG{}", step_name(step), name != nullptr ? name : "?");
  } else {
    what = fmt::format("{} ended without an answer", step_name(step));
  }
  const bool plain_works = step == Step::kRegister;
  return {plain_works ? Backend::kUring : Backend::kThreads, report.error, std::move(what)};
}

// The child's wait status. One that outlives its alarm (a filter has killed only one of its
// threads) is killed.
int wait_for(pid_t child) {
  const base::UniqueFd watch(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (watch) {
    pollfd event{watch.get(), POLLIN, 0};
    int ready = 0;
    do {
      ready = ::poll(&event, 1, kPatienceMilliseconds);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) ::kill(child, SIGKILL);
  }
  int status = 0;
  // ECHILD where the program ignores SIGCHLD: the call still returns only after the child has
  // ended.
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Finding probe() {
  const SharedReport shared;
  if (!shared.valid()) return {Backend::kThreads, errno, "no memory to probe io_uring"};
  Report& report = *new (&shared.report()) Report();
  // Without fork handlers: they may start threads or take locks in the child, which the parent's
  // other threads hold.
  const pid_t child = ::_Fork();
  if (child < 0) {
    return {Backend::kThreads, errno,
            fmt::format("fork for the probe answers {}", errno_name(errno))};
  }
  if (child == 0) probe_in_child(report);
  return judge(report, wait_for(child));
}

}  // namespace

Result<ProbedBackend> probe_backend(BackendChoice choice) {
  if (choice == BackendChoice::kThreads)
    return ProbedBackend{Backend::kThreads, "threads: as asked"};
  Finding found = probe();
  if (found.backend == Backend::kThreads && choice == BackendChoice::kUring) {
    return fail_with(Code::kUnsupported, std::move(found.text), found.os_errno);
  }
  return ProbedBackend{found.backend,
                       fmt::format("{}: {}", backend_name(found.backend), found.text)};
}

}  // namespace volferry::io
