# SPDX-License-Identifier: Apache-2.0
"""--progress: a live bar on a terminal, none elsewhere."""

import os
import pty
import select
import subprocess
import time

from support import program, trees
from support.case import ScratchCase


class Progress(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.write_random(os.path.join(self.src, "f"), 6 << 20, seed=1)

    def on_terminal(self, *options) -> str:
        """Runs with a pseudo-terminal as all three streams; returns what it would have shown."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        command = [program.program(), "sync", "--bwlimit", "4M", *options, self.src, self.dst]
        process = subprocess.Popen(
            command,
            stdin=far,
            stdout=far,
            stderr=far,
            env=program.clean_environment(TERM="xterm"),
            close_fds=True,
        )
        os.close(far)
        shown = b""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if not select.select([near], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                piece = os.read(near, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        process.kill() if process.poll() is None and time.monotonic() >= deadline else None
        self.assertEqual(0, process.wait(60), shown)
        return shown.decode("utf-8", "replace")

    def test_bar_on_a_terminal(self):
        shown = self.on_terminal()
        self.assertGreaterEqual(shown.replace("\r\n", "\n").count("\r"), 2, repr(shown))
        self.assertRegex(shown, r"\d+ ?%")
        self.assertRegex(shown, r"[KMG]i?B/s")

    def test_off_on_a_terminal(self):
        shown = self.on_terminal("--progress", "off")
        self.assertNotIn("\r", shown.replace("\r\n", "\n"))

    def test_summary_line_on_a_terminal(self):
        self.assertTrue(self.on_terminal("--progress", "off").strip())

    def test_none_without_a_terminal(self):
        result = self.volferry("sync", "--bwlimit", "8M", self.src, self.dst)
        self.assertEqual("", result.stderr)
        self.assertNotIn(b"%", result.stdout)

    def test_on_without_a_terminal(self):
        result = self.volferry("sync", "--progress", "on", "--bwlimit", "4M", self.src, self.dst)
        self.assertRegex(result.stderr + result.stdout.decode(), r"\d+ ?%")

    def test_json_progress_events(self):
        result = self.volferry(
            "sync", "--json", "--progress", "on", "--bwlimit", "4M", self.src, self.dst
        )
        events = result.of("progress")
        self.assertTrue(events, f"\n{result}")
        self.assertEqual("summary", result.events[-1]["event"])

    def test_bad_value(self):
        self.assert_error(
            self.volferry("sync", "--progress", "loud", self.src, self.dst, expect=2), 2, "progress"
        )
