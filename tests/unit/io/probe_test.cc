// SPDX-License-Identifier: Apache-2.0
// The probe under real seccomp filters, each in a forked child of the test.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/unique_fd.h"
#include "engine/io/queue.h"

namespace volferry::io {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kNoSeccomp = 77;

bool install(sock_filter* program, std::size_t length) {
  const sock_fprog filter{static_cast<unsigned short>(length), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Answers one system call with a seccomp action for the rest of this process's life.
bool install_filter(long syscall_number, unsigned action) {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(syscall_number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  return install(program.data(), program.size());
}

// Answers io_uring_register with ENOMEM where it is asked for a table of buffers.
bool refuse_buffer_tables() {
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IORING_REGISTER_BUFFERS2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  return install(program.data(), program.size());
}

// What a forked child wrote by returning it from `body`, and how it ended.
std::string in_child(const std::function<std::string()>& body, int& status) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = ::write(pipe[1], text.data(), text.size()) >= 0;
    ::_exit(text.empty() ? kNoSeccomp : written ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string text;
  std::array<char, 512> part{};
  for (ssize_t count = 0; (count = ::read(pipe[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  ::close(pipe[0]);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return text;
}

// "auto's answer|error of uring", and whether a zombie was left.
std::string probe_both() {
  const auto automatic = probe_backend(BackendChoice::kAuto);
  const auto uring = probe_backend(BackendChoice::kUring);
  std::string text = automatic ? automatic->why : "auto failed";
  text += "|";
  text += uring ? "uring works" : uring.error().message();
  if (!uring && uring.error().code != Code::kUnsupported) text += " with the wrong code";
  if (::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) text += " and a zombie";
  return text;
}

struct Refusal {
  const char* name;
  long syscall_number;
  unsigned action;
  const char* expected;
};

class ProbeRefused : public testing::TestWithParam<Refusal> {};

TEST_P(ProbeRefused, FallsBackToThreadsAndSaysWhy) {
  int status = 0;
  const std::string text = in_child(
      [] {
        const Refusal& refusal = GetParam();
        return install_filter(refusal.syscall_number, refusal.action) ? probe_both()
                                                                      : std::string();
      },
      status);
  ASSERT_TRUE(WIFEXITED(status)) << "the probe killed its caller, signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoSeccomp) GTEST_SKIP() << "seccomp filters are not available";
  const std::string expected = GetParam().expected;
  EXPECT_THAT(text, StartsWith("threads: " + expected + "|" + expected));
  EXPECT_THAT(text, testing::Not(HasSubstr("zombie")));
  EXPECT_THAT(text, testing::Not(HasSubstr("wrong code")));
}

INSTANTIATE_TEST_SUITE_P(
    Filters, ProbeRefused,
    testing::Values(Refusal{"eperm", SYS_io_uring_setup, SECCOMP_RET_ERRNO | EPERM,
                            "io_uring_setup answers EPERM"},
                    Refusal{"enosys", SYS_io_uring_setup, SECCOMP_RET_ERRNO | ENOSYS,
                            "io_uring_setup answers ENOSYS"},
                    Refusal{"kill", SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS,
                            "io_uring_setup is killed by SIGSYS"},
                    Refusal{"kill_thread", SYS_io_uring_setup, SECCOMP_RET_KILL_THREAD,
                            "io_uring_setup is killed by SIGSYS"},
                    Refusal{"trap", SYS_io_uring_setup, SECCOMP_RET_TRAP,
                            "io_uring_setup is killed by SIGSYS"},
                    Refusal{"enter_eperm", SYS_io_uring_enter, SECCOMP_RET_ERRNO | EPERM,
                            "io_uring_enter answers EPERM"}),
    [](const auto& info) { return info.param.name; });

TEST(Probe, RefusedRegistrationLeavesPlainUring) {
  if (!probe_backend(BackendChoice::kUring)) GTEST_SKIP() << "io_uring is refused here";
  int status = 0;
  const std::string text = in_child(
      [] {
        return refuse_buffer_tables() ? probe_backend(BackendChoice::kUring)->why : std::string();
      },
      status);
  if (text.empty()) GTEST_SKIP() << "seccomp filters are not available";
  EXPECT_EQ(text, "uring: io_uring_register of a buffer answers ENOMEM");
}

// Reads 1 KiB into every slot of a pool of `slots` times 1 MiB; the backend's name, or what went
// wrong.
std::string read_into_all_slots(unsigned slots) {
  auto pool = base::BufferPool::create(slots, 1 << 20);
  const base::UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  if (!pool || !zero) return "no pool";
  auto queue = make_io_queue({.backend = Backend::kUringFixed, .depth = 4, .pool = pool->get()});
  if (!queue) return queue.error().message();
  std::vector<base::Buffer> buffers;
  for (unsigned i = 0; i < slots; ++i) {
    base::Buffer buffer = (*pool)->try_acquire();
    std::fill_n(buffer.data(), 1024, 1);
    std::string failure;
    IoRequest request{.fd = zero.get(),
                      .data = buffer.data(),
                      .length = 1024,
                      .slot = buffer.slot(),
                      .done = [&](IoRequest&, Result<std::size_t> outcome) {
                        if (!outcome) failure = outcome.error().message();
                      }};
    (*queue)->submit(request);
    (*queue)->drain();
    if (!failure.empty()) return failure;
    if (std::count(buffer.data(), buffer.data() + 1024, 0) != 1024) return "wrong bytes";
    buffers.push_back(std::move(buffer));
  }
  return std::string(backend_name((*queue)->backend()));
}

// The same under a limit of locked memory, as a user without privilege to exceed it. Locked memory
// is charged per user and given back some time after a ring has ended, so each test has a user of
// its own.
std::string read_with_locked_memory(rlim_t bytes, uid_t user) {
  int status = 0;
  return in_child(
      [&] {
        const rlimit limit{bytes, bytes};
        if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return std::string();
        if (::geteuid() == 0 && ::setresuid(user, user, user) != 0) return std::string();
        return read_into_all_slots(8);
      },
      status);
}

TEST(Probe, QueueFallsBackToPlainUringWithoutLockedMemory) {
  if (!probe_backend(BackendChoice::kUring)) GTEST_SKIP() << "io_uring is refused here";
  const std::string text = read_with_locked_memory(512 << 10, 65'533);
  if (text.empty()) GTEST_SKIP() << "the limit of locked memory cannot be lowered";
  EXPECT_EQ(text, "uring");
}

TEST(Probe, SlotsBeyondLockedMemoryAreUsedPlain) {
  if (!probe_backend(BackendChoice::kUring)) GTEST_SKIP() << "io_uring is refused here";
  const std::string text = read_with_locked_memory(3 << 20, 65'532);
  if (text.empty()) GTEST_SKIP() << "the limit of locked memory cannot be lowered";
  EXPECT_EQ(text, "uring-fixed");
}

TEST(Probe, QueueSaysUnsupportedWhereRefused) {
  int status = 0;
  const std::string text = in_child(
      [] {
        if (!install_filter(SYS_io_uring_setup, SECCOMP_RET_ERRNO | EPERM)) return std::string();
        const auto queue = make_io_queue({.backend = Backend::kUring});
        if (queue) return std::string("made");
        return std::string(queue.error().code == Code::kUnsupported ? "unsupported " : "other ") +
               queue.error().message();
      },
      status);
  if (text.empty()) GTEST_SKIP() << "seccomp filters are not available";
  EXPECT_EQ(text, "unsupported io_uring_setup: Operation not permitted");
}

TEST(Probe, IgnoredChildrenDoNotDisturb) {
  int status = 0;
  const auto expected = probe_backend(BackendChoice::kAuto);
  const std::string text = in_child(
      [] {
        ::signal(SIGCHLD, SIG_IGN);
        return probe_backend(BackendChoice::kAuto)->why;
      },
      status);
  EXPECT_EQ(text, expected->why);
}

TEST(Probe, ThreadsAreTakenUnseen) {
  const auto probed = probe_backend(BackendChoice::kThreads);
  ASSERT_TRUE(probed);
  EXPECT_EQ(probed->backend, Backend::kThreads);
}

}  // namespace
}  // namespace volferry::io
