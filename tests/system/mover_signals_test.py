# SPDX-License-Identifier: Apache-2.0
"""Movers that are told to end, or whose time is up; what arrived is used by the next run."""

import contextlib
import os
import signal
import subprocess
import sys
import time

from support import compare, trees
from support.mover import MoverCase, free_port
from support.wait import wait_until

MIB = trees.MIB


class Signals(MoverCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.dst)
        trees.write_random(os.path.join(self.src, "large"), 48 * MIB, seed=1)

    def under_way(self):
        wait_until(lambda: compare.temporaries(self.dst), "the transfer to be under way")

    def end_by(self, mover, number: int, code: int):
        begin = time.monotonic()
        mover.process.send(number)
        run = mover.end(code, timeout=30)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual("Interrupted", run.result["reason"])
        self.assertTrue(run.result["retryable"])
        return run

    def test_source_in_the_middle(self):
        far = self.destination()
        near = self.source(far.port, BANDWIDTH_LIMIT="8M")
        self.under_way()
        self.end_by(near, signal.SIGTERM, 143)
        again = self.source(far.port).end()
        self.assertEqual("ok", far.end().result["result"])
        self.assertLess(again.result["wire_sent"], 48 * MIB)
        self.assert_same()
        self.assert_no_temporaries()

    def test_destination_in_the_middle(self):
        far = self.destination()
        near = self.source(far.port, BANDWIDTH_LIMIT="8M", RETRIES=0)
        self.under_way()
        run = self.end_by(far, signal.SIGTERM, 143)
        self.assertEqual(1, run.result["sessions"])
        run = near.end(13)
        self.assertEqual(("ConnectionLost", True), (run.result["reason"], run.result["retryable"]))
        self.transfer()
        self.assert_same()
        self.assert_no_temporaries()

    def test_destination_restarts_and_the_source_comes_back(self):
        port = free_port()
        far = self.destination(LISTEN=f"127.0.0.1:{port}")
        near = self.source(port, BANDWIDTH_LIMIT="8M")
        self.under_way()
        self.end_by(far, signal.SIGTERM, 143)
        far = self.destination(LISTEN=f"127.0.0.1:{port}")
        near.end()
        far.end()
        self.assert_same()

    def test_idle_destination(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            run = self.end_by(self.destination(), number, code)
            self.assertIsNone(run.result["peer"])
            self.assertEqual(0, run.result["sessions"])

    def test_source_that_waits(self):
        near = self.source(free_port())
        wait_until(lambda: "trying again" in near.process.stderr_text(), "a refused connection")
        self.end_by(near, signal.SIGTERM, 143)

    def test_name_lookup_that_hangs(self):
        """Nothing can interrupt it, and the pod must still end with a result."""
        self.need_root("a network of its own")
        self.need_tool("unshare")
        self.need_tool("ip")
        resolv = self.path("resolv.conf")
        trees.write(resolv, b"nameserver 127.0.0.1\noptions attempts:5\n")
        silent = "import socket,time; s=socket.socket(2,2); s.bind(('127.0.0.1',53)); time.sleep(90)"
        script = (
            f'ip link set lo up && mount --bind "{resolv}" /etc/resolv.conf || exit 99; '
            f'"{sys.executable}" -c "{silent}" & exec "$@"'
        )
        prefix = ("unshare", "--net", "--mount", "sh", "-c", script, "sh")
        probe = ["unshare", "--net", "--mount", "ip", "link", "set", "lo", "up"]
        if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            self.skipTest("no network namespaces here")
        near = self.source(8000, ADDRESS="some.example", options={"prefix": prefix})
        self.addCleanup(self._end_group, near.process.pid)
        wait_until(lambda: '"phase":"connect"' in near.process.stdout_bytes().decode(), "the lookup")
        self.end_by(near, signal.SIGTERM, 143)

    @staticmethod
    def _end_group(leader: int):
        # The silent name server is left in the session that the mover was started in.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)

    def test_stalled_peer(self):
        far = self.destination()
        near = self.source(far.port, BANDWIDTH_LIMIT="8M")
        self.under_way()
        far.process.send(signal.SIGSTOP)
        try:
            self.end_by(near, signal.SIGTERM, 143)
        finally:
            far.process.send(signal.SIGCONT)
        self.end_by(far, signal.SIGTERM, 143)

    def test_sync_timeout(self):
        far = self.destination()
        run = self.source(far.port, BANDWIDTH_LIMIT="4M", SYNC_TIMEOUT="2s").end(13, timeout=30)
        self.assertEqual(("failed", "Timeout", True), tuple(run.result[f] for f in ("result", "reason", "retryable")))
        self.assertIn("VOLFERRY_SYNC_TIMEOUT", run.result["message"])
        self.source(far.port).end()
        far.end()
        self.assert_same()
