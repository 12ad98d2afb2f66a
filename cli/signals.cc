// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/base/check.h"

namespace volferry::cli {

namespace {

constexpr int kHandled[] = {SIGINT, SIGTERM, SIGHUP};

// A handler can reach nothing but what is static; StopSignals owns the meaning.
std::atomic<StopFlag*> g_stop{nullptr};
static_assert(StopFlag::is_always_lock_free && std::atomic<StopFlag*>::is_always_lock_free);

void on_signal(int signal) {
  const int code = signal == SIGINT ? 130 : 143;
  StopFlag* stop = g_stop.load();
  if (stop == nullptr || stop->exchange(code) != 0) _exit(code);
}

}  // namespace

StopSignals::StopSignals(StopFlag& stop) {
  VF_CHECK(g_stop.exchange(&stop) == nullptr, "one StopSignals at a time");
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : kHandled) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    // nohup(1) and background jobs of a shell ignore signals on purpose.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (const int signal : kHandled) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == on_signal) ::signal(signal, SIG_DFL);
  }
  g_stop.store(nullptr);
}

void prepare_process() {
  signal(SIGPIPE, SIG_IGN);
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

}  // namespace volferry::cli
