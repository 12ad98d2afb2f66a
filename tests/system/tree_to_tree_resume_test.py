# SPDX-License-Identifier: Apache-2.0
"""After a cut or a kill the next run uses what arrived."""

import os
import signal

from support import trees
from support.case import ScratchCase, shared_psk
from support.wait import locked, wait_until

SIZE = 96 << 20


class Resume(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.write_random(os.path.join(self.src, "large"), SIZE, seed=1)
        os.makedirs(self.dst)
        self.key = ["--psk-file", shared_psk()]

    def push(self, port: int, *options, expect=0):
        url = f"tls://127.0.0.1:{port}"
        return self.volferry("sync", "--json", *self.key, *options, self.src, url, expect=expect)

    def assert_continued(self, result):
        self.assert_same()
        self.assert_no_temporaries()
        self.assertLessEqual(result.summary["literal_bytes"], SIZE * 0.62, f"\n{result}")
        self.assertGreaterEqual(result.summary["matched_bytes"], SIZE * 0.38, f"\n{result}")

    def test_cut_push(self):
        server = self.serve(self.dst)
        relay = self.relay(server.port, cut_after=SIZE // 2)
        self.push(relay.port, "--retries", "0", expect=13)
        self.assertFalse(os.path.exists(os.path.join(self.dst, "large")))
        self.assert_continued(self.push(server.port))

    def test_cut_pull(self):
        server = self.serve(self.src)
        relay = self.relay(server.port, cut_after=SIZE // 2)
        for port, options, expect in ((relay.port, ("--retries", "0"), 13), (server.port, (), 0)):
            url = f"tls://127.0.0.1:{port}"
            result = self.volferry(
                "sync", "--json", *self.key, *options, url, self.dst, expect=expect
            )
        self.assert_continued(result)

    def test_cut_and_reconnect_within_one_run(self):
        server = self.serve(self.dst)
        relay = self.relay(server.port, cut_after=SIZE // 2)
        result = self.push(relay.port, "--retries", "3")
        self.assert_same()
        self.assert_no_temporaries()
        self.assertGreaterEqual(relay.connections, 2)
        self.assertLess(relay.passed, SIZE * 1.3, f"what had arrived was sent again\n{result}")

    def test_killed_client(self):
        server = self.serve(self.dst)
        relay = self.relay(server.port)
        process = self.start("sync", *self.key, self.src, f"tls://127.0.0.1:{relay.port}")
        wait_until(lambda: relay.passed > SIZE * 0.55, "half of the file to pass", 60)
        process.send(signal.SIGKILL)
        process.popen.wait()
        if os.path.exists(os.path.join(self.dst, "large")):
            self.skipTest("the sync was over before it could be killed")
        wait_until(lambda: not locked(self.dst), "the server to let go of the destination", 60)
        self.assert_continued(self.push(server.port))

    def test_killed_server(self):
        server = self.serve(self.dst)
        relay = self.relay(server.port)
        process = self.start(
            "sync", "--retries", "0", *self.key, self.src, f"tls://127.0.0.1:{relay.port}"
        )
        wait_until(lambda: relay.passed > SIZE * 0.55, "half of the file to pass", 60)
        server.process.send(signal.SIGKILL)
        server.process.popen.wait()
        relay.cut()
        self.assertIn(process.wait().code, (10, 13))
        again = self.serve(self.dst)
        self.assert_continued(self.push(again.port))

    def test_killed_local(self):
        process = self.start("sync", "--bwlimit", "64M", self.src, self.dst)
        wait_until(lambda: _allocated(self.dst) > SIZE * 0.55, "half of the file to be written", 60)
        process.send(signal.SIGKILL)
        process.popen.wait()
        result = self.volferry("sync", "--json", self.src, self.dst)
        self.assert_continued(result)

    def test_interrupted_in_place(self):
        server = self.serve(self.dst)
        relay = self.relay(server.port, cut_after=SIZE // 2)
        self.push(relay.port, "--inplace", "--retries", "0", expect=13)
        result = self.push(server.port, "--inplace")
        self.assert_continued(result)


def _allocated(root: str) -> int:
    total = 0
    for name in os.listdir(root):
        try:
            total += os.lstat(os.path.join(root, name)).st_blocks * 512
        except FileNotFoundError:
            pass
    return total
