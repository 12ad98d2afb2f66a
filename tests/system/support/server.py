# SPDX-License-Identifier: Apache-2.0
"""A `volferry serve` on loopback."""

import re
import signal

from . import program
from .wait import wait_until

_LISTENING = re.compile(rb"^listening on (?:\[([^\]\n]+)\]|([^\n:]+)):(\d+)$", re.MULTILINE)


class Server:
    """Started at once; the port is the one that the program prints."""

    def __init__(
        self, root, auth: list[str], *options: str, address: str = "127.0.0.1:0", **process_options
    ):
        args = ["serve", "--listen", address, "--root", str(root), *auth, *options]
        self.process = program.Process(args, **process_options)
        try:
            wait_until(self._announced, "the server's `listening on` line")
        except AssertionError:
            self.process.close()
            raise

    def _announced(self) -> bool:
        found = _LISTENING.search(self.process.stdout_bytes())
        if found:
            host = (found[1] or found[2]).decode()
            self.host = f"[{host}]" if ":" in host else host
            self.port = int(found[3])
            return True
        if not self.process.running():
            raise AssertionError(f"the server ended at once: {self.process.stderr_text()}")
        return False

    def url(self, path: str = "", port: int | None = None) -> str:
        return f"tls://{self.host}:{port or self.port}{path}"

    def stop(self, timeout: float = 30) -> program.Run:
        """SIGTERM, and how it ended."""
        if self.process.running():
            self.process.send(signal.SIGTERM)
        return self.process.wait(timeout)

    def close(self) -> None:
        self.process.close()
