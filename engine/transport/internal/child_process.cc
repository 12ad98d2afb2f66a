// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/internal/child_process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace volferry::transport {

namespace {

constexpr std::chrono::milliseconds kExitTime{2000};
constexpr std::chrono::milliseconds kTermTime{1000};

struct SpawnSetup {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
};

}  // namespace

ChildProcess::ChildProcess(pid_t pid)
    : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

Result<std::shared_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& words,
                                                          int in, int out) {
  SpawnSetup setup;
  ::posix_spawn_file_actions_adddup2(&setup.actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&setup.actions, out, STDOUT_FILENO);
  // The child gets a clean slate: our threads block signals, and the program may ignore some.
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&setup.attributes, &none);
  ::posix_spawnattr_setsigdefault(&setup.attributes, &all);
  ::posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0], &setup.actions, &setup.attributes,
                                   arguments.data(), environ);
  if (error != 0) return fail_with(Code::kConnect, "run " + words[0], error);
  return std::shared_ptr<ChildProcess>(new ChildProcess(pid));
}

bool ChildProcess::ends_within(std::chrono::milliseconds patience) {
  if (status_) return true;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  // Without a pidfd (before Linux 5.3, or refused) there is nothing to wait on: look once.
  if (pidfd_) (void)::poll(&ended, 1, static_cast<int>(patience.count()));
  int status = 0;
  pid_t got = -1;
  do {
    got = ::waitpid(pid_, &status, WNOHANG);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return false;
  status_ = got == pid_ ? status : 0;
  return true;
}

std::optional<std::string> ChildProcess::wait_end(std::chrono::milliseconds patience) {
  if (!ends_within(patience)) return std::nullopt;
  if (WIFSIGNALED(*status_)) return "signal " + std::to_string(WTERMSIG(*status_));
  return "exit status " + std::to_string(WEXITSTATUS(*status_));
}

ChildProcess::~ChildProcess() {
  if (ends_within(kExitTime)) return;
  ::kill(pid_, SIGTERM);
  if (ends_within(kTermTime)) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace volferry::transport
