# SPDX-License-Identifier: Apache-2.0
"""Starts the program under test and reads what it says."""

import atexit
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

DEFAULT_TIMEOUT_S = 120
PLAIN_USER = 65534


def program() -> str:
    path = os.environ.get("VOLFERRY", "")
    if not path or not os.access(path, os.X_OK):
        raise RuntimeError(
            f"VOLFERRY does not name a program: {path!r} (run.py --volferry PATH sets it)"
        )
    return _for_everybody(os.path.abspath(path))


@functools.cache
def _for_everybody(path: str) -> str:
    """Some tests run the program as a plain user, who cannot reach a clone in root's home: then a copy serves."""
    if os.geteuid() != 0 or _reachable(path):
        return path
    folder = tempfile.mkdtemp(prefix="volferry-program-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    copy = shutil.copy2(path, folder)
    os.chmod(copy, 0o755)
    return copy


def _reachable(path: str) -> bool:
    if os.stat(path).st_mode & 0o005 != 0o005:
        return False
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 0o001:
            return False
    return True


def clean_environment(**extra: str) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("SSH_AUTH_SOCK", "VOLFERRY")}
    environment["LC_ALL"] = "C.UTF-8"
    return environment | extra


@dataclass
class Run:
    """How one run of the program ended."""

    args: list
    code: int
    stdout: bytes
    stderr: str
    peak_kib: int = 0
    peak_threads: int = 0
    elapsed_s: float = 0.0
    events: list[dict] = field(default_factory=list)

    def __str__(self) -> str:
        command = " ".join(map(str, self.args))
        return f"$ {command}\nexit {self.code}\nstdout: {self.stdout[-3000:]!r}\nstderr: {self.stderr[-3000:]}"

    def of(self, kind: str) -> list[dict]:
        return [event for event in self.events if event.get("event") == kind]

    @property
    def summary(self) -> dict:
        found = self.of("summary")
        if len(found) != 1 or self.events[-1] is not found[0]:
            raise AssertionError(f"want one summary, as the last event\n{self}")
        return found[0]

    @property
    def items(self) -> list[tuple[str, str]]:
        return [(item["code"], item["path"]) for item in self.of("item")]

    @property
    def wire(self) -> int:
        return self.summary["wire_sent"] + self.summary["wire_received"]

    @property
    def lines(self) -> list[str]:
        return self.stdout.decode("utf-8").splitlines()


class Process:
    """A running volferry. Its peak memory and thread count are sampled while it runs, and always
    killed in `close`.
    """

    def __init__(
        self,
        args,
        *,
        user: int | None = None,
        env=None,
        cwd=None,
        preexec=None,
        stdin=None,
        prefix=(),
    ):
        self.args = [*prefix, program(), *args]
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        options = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self._started = time.monotonic()
        self.popen = subprocess.Popen(
            self.args,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=self._out,
            stderr=self._err,
            env=clean_environment(**(env or {})),
            cwd=cwd,
            preexec_fn=preexec,
            start_new_session=True,
            **options,
        )
        self.peak_kib = 0
        self.peak_threads = 0
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def running(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: int) -> None:
        """Signals this process alone, by its id."""
        self.popen.send_signal(number)

    def wait(self, timeout: float = DEFAULT_TIMEOUT_S) -> Run:
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            self._finish()
            raise AssertionError(f"did not end within {timeout} s\n{self._run(-9)}") from None
        self._finish()
        return self._run(code)

    def close(self) -> None:
        if self.running():
            self.popen.kill()
            self.popen.wait()
        self._finish()
        self._out.close()
        self._err.close()

    def stderr_text(self) -> str:
        size = os.fstat(self._err.fileno()).st_size
        return os.pread(self._err.fileno(), size, 0).decode("utf-8", "backslashreplace")

    def stdout_bytes(self) -> bytes:
        size = os.fstat(self._out.fileno()).st_size
        return os.pread(self._out.fileno(), size, 0)

    def _finish(self) -> None:
        self._over.set()
        self._sampler.join()

    def _sample(self) -> None:
        while not self._over.wait(0.01):
            try:
                with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as status:
                    for line in status:
                        if line.startswith("VmHWM:"):
                            self.peak_kib = max(self.peak_kib, int(line.split()[1]))
                        elif line.startswith("Threads:"):
                            self.peak_threads = max(self.peak_threads, int(line.split()[1]))
            except OSError:
                return

    def _run(self, code: int) -> Run:
        # A death by signal counts as the shell counts it.
        return Run(
            args=self.args,
            code=code if code >= 0 else 128 - code,
            stdout=self.stdout_bytes(),
            stderr=self.stderr_text(),
            peak_kib=self.peak_kib,
            peak_threads=self.peak_threads,
            elapsed_s=time.monotonic() - self._started,
        )


def parse_events(run: Run) -> Run:
    """Fills in the NDJSON events; every line of stdout has to be one."""
    for line in run.stdout.decode("utf-8").splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError as error:
            raise AssertionError(f"stdout is not NDJSON: {line!r}: {error}\n{run}") from None
        if not isinstance(event, dict) or "event" not in event:
            raise AssertionError(f"not an event: {line!r}\n{run}")
        run.events.append(event)
    return run


def run(args, timeout: float = DEFAULT_TIMEOUT_S, **options) -> Run:
    """Runs to the end. NDJSON is parsed where --json is among the arguments."""
    process = Process(args, **options)
    try:
        result = process.wait(timeout)
    finally:
        process.close()
    return parse_events(result) if "--json" in args and result.code not in (137, 139) else result


def interrupt(process: Process) -> None:
    process.send(signal.SIGINT)
