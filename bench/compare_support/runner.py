# SPDX-License-Identifier: Apache-2.0
"""One measured run, in a small process of its own.

Reads a JSON request on stdin, starts the servers, waits until they listen, faults memory in, runs the
steps one after the other, stops the servers and writes one JSON result to stdout.

CPU time is the sum over every process that was waited for. As this process is a "child subreaper",
daemons that detach come back to it, so both ends are complete without a cgroup. It is started with
`python3 -I -S` and imports little, because Linux lets a child's peak memory start at the size of the
process that forked it: peaks below about 10 MiB are this floor and not the contender's own.

Request: {"servers": [{"argv": [..], "port": N | "line": TEXT, "uncounted": bool,
"killed_idle": bool}], "steps": [[argv..], ..],
"prefault": bytes, "cold": bool, "timeout": seconds, "cwd": path}
"""

import ctypes
import json
import mmap
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MADV_POPULATE_WRITE = 23
OUTPUT_LIMIT = 1 << 20

libc = ctypes.CDLL(None, use_errno=True)


class Timeout(Exception):
    """The run took longer than its limit."""


class Usage:
    """CPU seconds and the largest process of everything waited for."""

    def __init__(self):
        self.user = self.system = 0.0
        self.peak_kib = 0
        # Processes that belong to the set-up, such as the slow link, and not to the contender.
        self.uncounted = set()
        # Servers that take long over SIGTERM: killed as soon as they have no children left.
        self.killed_idle = set()

    def add(self, pid, rusage):
        if pid in self.uncounted:
            return
        self.user += rusage.ru_utime
        self.system += rusage.ru_stime
        self.peak_kib = max(self.peak_kib, rusage.ru_maxrss)


def spawn(argv, stdout, stderr, cwd):
    """Forks and executes; the child dies with this process. Returns its pid."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        if cwd:
            os.chdir(cwd)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def scratch(name):
    """An anonymous file that takes a program's output."""
    return os.memfd_create(name, os.MFD_CLOEXEC)


def read_scratch(fd):
    size = os.fstat(fd).st_size
    return os.pread(fd, OUTPUT_LIMIT, max(0, size - OUTPUT_LIMIT)).decode(errors="replace")


def listening(port):
    """Whether somebody listens on the TCP port, without connecting to it."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                for line in lines:
                    fields = line.split()
                    if fields[1].endswith(wanted) and fields[3] == "0A":
                        return True
        except FileNotFoundError:
            pass
    return False


def await_ready(server, pid, stdout, stderr, usage):
    """Waits up to 20 s until the server listens, else raises RuntimeError with its output."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if "port" in server and listening(server["port"]):
            return
        if "line" in server and server["line"] in read_scratch(stdout):
            return
        done, status, rusage = os.wait4(pid, os.WNOHANG)
        if done:
            usage.add(pid, rusage)
            raise RuntimeError(f"{server['argv'][0]} ended early: {read_scratch(stderr).strip()}")
        time.sleep(0.002)
    raise RuntimeError(f"{server['argv'][0]} does not listen: {read_scratch(stderr).strip()}")


def fault_in(size):
    """Touches and frees memory in a child, so that the guest owns it before the clock starts."""
    if size <= 0:
        return
    pid = os.fork()
    if pid == 0:
        try:
            area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                area.madvise(mmap.MADV_HUGEPAGE)
            area.madvise(MADV_POPULATE_WRITE)
        except (OSError, ValueError):
            pass
        os._exit(0)
    os.waitpid(pid, 0)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as control:
        control.write("3\n")


def children(of=None):
    """Direct children of this process (adopted ones included) or of another, zombies too."""
    own = str(of or os.getpid())
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == own:
            found.append(int(entry))
    return found


def stop_all(usage):
    """Ends every remaining child: SIGTERM, after 10 s SIGKILL, and waits for all of them."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    deadline = time.monotonic() + 10
    told = set()
    while True:
        hard = time.monotonic() > deadline
        for pid in children():
            kill = hard or (pid in usage.killed_idle and not children(pid))
            if kill or (pid not in told and pid not in usage.killed_idle):
                told.add(pid)
                try:
                    os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
                except ProcessLookupError:
                    pass
        try:
            while True:
                pid, _, rusage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    break
                usage.add(pid, rusage)
        except ChildProcessError:
            return
        time.sleep(0.002)


def run(request):
    usage = Usage()
    result = {"exit_code": None, "wall_s": None, "error": None, "step_s": []}
    out, err = scratch("stdout"), scratch("stderr")
    server_outputs = []
    try:
        signal.setitimer(signal.ITIMER_REAL, request.get("timeout", 600))
        for server in request.get("servers", []):
            server_out, server_err = scratch("server-stdout"), scratch("server-stderr")
            server_outputs.append(server_err)
            pid = spawn(server["argv"], server_out, server_err, request.get("cwd"))
            if server.get("uncounted"):
                usage.uncounted.add(pid)
            if server.get("killed_idle"):
                usage.killed_idle.add(pid)
            await_ready(server, pid, server_out, server_err, usage)
        fault_in(request.get("prefault", 0))
        if request.get("cold"):
            drop_caches()
        start = time.perf_counter()
        for argv in request["steps"]:
            before = time.perf_counter()
            pid = spawn(argv, out, err, request.get("cwd"))
            _, status, rusage = os.wait4(pid, 0)
            result["step_s"].append(time.perf_counter() - before)
            usage.add(pid, rusage)
            result["exit_code"] = os.waitstatus_to_exitcode(status)
            if result["exit_code"] != 0:
                break
        result["wall_s"] = time.perf_counter() - start
    except Timeout:
        result["error"] = f"no end after {request.get('timeout', 600)} s"
    except RuntimeError as error:
        result["error"] = str(error)
    finally:
        stop_all(usage)
    result.update(user_s=usage.user, system_s=usage.system, peak_kib=usage.peak_kib,
                  stdout=read_scratch(out), stderr=read_scratch(err),
                  server_stderr=[read_scratch(fd) for fd in server_outputs])
    return result


def on_alarm(_signal, _frame):
    raise Timeout


def on_stop(number, _frame):
    """The parent is gone or wants to end: take everything down."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_all(Usage())
    os._exit(128 + number)


def main():
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    json.dump(run(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
