# SPDX-License-Identifier: Apache-2.0
"""`volferry mover` with its environment, its key folder and its one result."""

import json
import os
import re
import secrets
import socket
import urllib.error
import urllib.request

from . import program
from .case import ScratchCase
from .wait import wait_until

MAX_RESULT = 4096
_LISTENING = re.compile(rb'"event":"listening","address":"\[?([^"\]]*)\]?:(\d+)"')
_METRICS = re.compile(r"metrics on port (\d+)")
_RESULT_FIELDS = [
    "event", "version", "role", "result", "exit_code", "reason", "retryable", "message",
    "seq", "attempt", "final_sync_id",
    "files_total", "files_transferred", "bytes_total", "literal_bytes", "matched_bytes",
    "zero_bytes", "wire_sent", "wire_received", "elapsed_s", "error_count", "owner_skipped", "sessions",
    "engine_version", "protocol", "token", "peer", "log_tail",
]  # fmt: skip


def make_keys(folder: str, identity: str = "pair", key: str | None = None) -> str:
    """Files `id` and `psk`, as a Secret has them. Returns the folder."""
    os.makedirs(folder, mode=0o700)
    for name, text in (("id", identity), ("psk", key or secrets.token_hex(32))):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(text + "\n")
        os.chmod(path, 0o600)
    return folder


def free_port() -> int:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return end.getsockname()[1]


class Mover:
    """One running mover."""

    def __init__(self, case: "MoverCase", role: str, log: str, environment: dict, **options):
        self.case = case
        self.role = role
        self.log = log
        self.process = case.start("mover", role, *options.pop("args", ()), env=environment, **options)

    def _port_by(self, find, what: str) -> int:
        found: list = []

        def seen() -> bool:
            match = find()
            if match:
                found.append(int(match[match.re.groups]))
                return True
            if not self.process.running():
                raise AssertionError(f"the mover ended at once: {self.process.stderr_text()}")
            return False

        wait_until(seen, what)
        return found[0]

    def listening_port(self) -> int:
        return self._port_by(
            lambda: _LISTENING.search(self.process.stdout_bytes()), "the listening event"
        )

    def metrics_port(self) -> int:
        return self._port_by(
            lambda: _METRICS.search(self.process.stderr_text()), "the metrics port"
        )

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Status and body of one HTTP request."""
        url = f"http://127.0.0.1:{port or self.metrics_port()}{path}"
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self, expect: int | tuple = 0, timeout: float = 120) -> program.Run:
        """Waits, and checks what holds for every end; the run's `result` is the result line."""
        run = program.parse_events(self.process.wait(timeout))
        case = self.case
        case.assert_exit(run, expect)
        run.result = run.events[-1]
        case.assertEqual(_RESULT_FIELDS, list(run.result), f"\n{run}")
        case.assertEqual(("result", 1, self.role), tuple(run.result[f] for f in ("event", "version", "role")))
        case.assertEqual(run.code, run.result["exit_code"], f"\n{run}")
        line = run.lines[-1]
        case.assertLessEqual(len(line.encode()), MAX_RESULT)
        with open(self.log, encoding="utf-8") as stream:
            case.assertEqual(line + "\n", stream.read())
        failed = run.result["result"] == "failed"
        case.assertEqual(failed, bool(run.result["reason"]) and run.code not in (3, 4), f"\n{run}")
        if failed:
            last = run.stderr.splitlines()[-1]
            case.assertTrue(last.startswith("volferry: error: "), f"\n{run}")
        for secret in case.secrets:
            for text in (run.stdout.decode(), run.stderr):
                case.assertNotIn(secret, text, "a key was printed")
        return run


class MoverCase(ScratchCase):
    """A test with a key folder that both movers use unless told otherwise."""

    def setUp(self) -> None:
        super().setUp()
        self.key = secrets.token_hex(32)
        self.secrets = [self.key]
        self.keys = make_keys(self.path("keys"), key=self.key)
        self._count = 0

    def _mover(self, role: str, environment: dict, options: dict) -> Mover:
        self._count += 1
        log = self.path(f"termination{self._count}")
        settings = {"KEYS": self.keys, "METRICS": "off", "TERMINATION_LOG": log} | environment
        return Mover(
            self, role, log, {f"VOLFERRY_{name}": str(v) for name, v in settings.items()}, **options
        )

    def destination(self, volume: str | None = None, /, options: dict | None = None, **env) -> Mover:
        """Waits until it listens; `port` is where."""
        mover = self._mover(
            "destination",
            {"VOLUME": volume or self.dst, "LISTEN": "127.0.0.1:0"} | env,
            options or {},
        )
        mover.port = mover.listening_port()
        return mover

    def source(self, port: int, volume: str | None = None, /, options: dict | None = None, **env) -> Mover:
        return self._mover(
            "source",
            {"VOLUME": volume or self.src, "ADDRESS": "127.0.0.1", "PORT": port} | env,
            options or {},
        )

    def any_mover(self, role: str, /, options: dict | None = None, **env) -> Mover:
        """With these settings alone; it need not listen."""
        return self._mover(role, env, options or {})

    def transfer(self, source: str | None = None, destination: str | None = None, **env):
        """Both ends to a good end; returns the two runs."""
        far = self.destination(destination)
        near = self.source(far.port, source, **env).end()
        return near, far.end()
