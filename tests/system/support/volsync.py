# SPDX-License-Identifier: Apache-2.0
"""`volferry volsync` as VolSync's operator starts its movers."""

import os
import re
import secrets

from . import trees
from .case import ScratchCase
from .mover import free_port
from .wait import wait_until

# What the operator keeps of a pod's log after a success, and besides after a failure.
KEPT = re.compile(
    r"[sS]ent\s.+[bB]ytes\s.+[rR]eceived\s.+[bB]ytes|[tT]otal size|[rR]sync completed in"
)
KEPT_OF_FAILURES = re.compile(r"^([rR]sync|diskrsync)|[fF]ail|[eE]rror")
_LISTENING = re.compile(rb"listening on \S+:(\d+)")


class VolsyncCase(ScratchCase):
    """A test with a `psk.txt` as the operator makes it."""

    def setUp(self) -> None:
        super().setUp()
        os.makedirs(self.src)
        os.makedirs(self.dst)
        self.key = secrets.token_hex(64)
        self.keys = self.path("keys")
        os.mkdir(self.keys, 0o700)
        trees.write(os.path.join(self.keys, "psk.txt"), f"volsync:{self.key}".encode(), mode=0o600)
        self._count = 0

    def _mover(self, role: str, environment: dict, **options):
        self._count += 1
        settings = {
            "VOLFERRY_KEYS": self.keys,
            "VOLFERRY_METRICS": "off",
            "VOLFERRY_TERMINATION_LOG": self.path(f"termination{self._count}"),
            "PRIVILEGED_MOVER": "0",
        } | environment
        return self.start("volsync", role, env={k: str(v) for k, v in settings.items()}, **options)

    def server(self, volume: str | None = None, /, prefix=(), preexec=None, **environment):
        """Waits until it listens; `port` is where."""
        settings = {"VOLFERRY_VOLUME": volume or self.dst, "VOLFERRY_LISTEN": "127.0.0.1:0"}
        process = self._mover("destination", settings | environment, prefix=prefix, preexec=preexec)
        found: list = []

        def seen() -> bool:
            match = _LISTENING.search(process.stdout_bytes())
            found.append(int(match[1])) if match else None
            if not match and not process.running():
                raise AssertionError(f"the server ended at once: {process.stderr_text()}")
            return bool(match)

        wait_until(seen, "the listener")
        process.port = found[0]
        return process

    def client(self, port: int | None = None, volume: str | None = None, /, options: dict | None = None, **environment):
        settings = {
            "VOLFERRY_VOLUME": volume or self.src,
            "DESTINATION_ADDRESS": "127.0.0.1",
            "DESTINATION_PORT": port or free_port(),
        }
        return self._mover("source", settings | environment, **(options or {}))

    def end(self, process, expect: int = 0, timeout: float = 120):
        run = process.wait(timeout)
        self.assert_exit(run, expect)
        self.assertNotIn(self.key, run.stdout.decode() + run.stderr)
        return run

    def sync(self, source: str | None = None, destination: str | None = None, **environment):
        """Both ends to a good end; returns the two runs."""
        far = self.server(destination, **environment)
        near = self.end(self.client(far.port, source, **environment))
        return near, self.end(far)
