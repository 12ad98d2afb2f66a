# SPDX-License-Identifier: Apache-2.0
"""/metrics, /healthz and /progress of a mover at work."""

import json
import os
import re
import socket

from support import trees
from support.mover import MoverCase, free_port
from support.wait import wait_until

MIB = trees.MIB
PROGRESS_FIELDS = [
    "event", "phase", "total_known", "files_done", "files_total", "bytes_done", "bytes_total",
    "bytes_per_s", "eta_s",
]  # fmt: skip


def metrics(mover) -> dict[str, float]:
    status, text = mover.get("/metrics")
    if status != 200:
        raise AssertionError(f"/metrics: {status}")
    values = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    return values


class Endpoint(MoverCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.dst)

    def test_while_data_moves(self):
        trees.write_random(os.path.join(self.src, "large"), 12 * MIB, seed=1)
        far = self.destination(METRICS="127.0.0.1:0")
        self.assertEqual((204, ""), far.get("/progress"))
        self.assertEqual((200, "ok\n"), far.get("/healthz"))
        self.assertEqual(1, metrics(far)['volferry_mover_up{role="destination"}'])
        near = self.source(far.port, METRICS="127.0.0.1:0", BANDWIDTH_LIMIT="2M")

        def moving() -> bool:
            found = metrics(far)
            return found['volferry_mover_bytes_total{role="destination",kind="wire_received"}'] > MIB

        wait_until(moving, "a MiB to arrive")
        for mover, role in ((far, "destination"), (near, "source")):
            self.assertEqual((200, "ok\n"), mover.get("/healthz"))
            status, text = mover.get("/progress")
            self.assertEqual(200, status)
            progress = json.loads(text)
            self.assertEqual(PROGRESS_FIELDS, list(progress))
            self.assertEqual("sync", progress["phase"])
            found = metrics(mover)
            self.assertEqual(1, found[f'volferry_mover_sessions_total{{role="{role}"}}'])
            self.assertLess(found[f'volferry_mover_progress_ratio{{role="{role}"}}'], 1)
            for kind in ("literal", "matched", "zero", "wire_sent", "wire_received"):
                self.assertIn(f'volferry_mover_bytes_total{{role="{role}",kind="{kind}"}}', found)
            self.assertEqual(1, found[f'volferry_mover_files_total{{role="{role}",kind="listed"}}'])
        run = near.end()
        progress = run.of("progress")
        self.assertTrue(progress)
        self.assertEqual(PROGRESS_FIELDS, list(progress[0]))
        # At most one every two seconds, and one at each new phase.
        self.assertLessEqual(len(progress), run.elapsed_s / 2 + 5)
        far.end()

    def test_other_requests(self):
        far = self.destination(METRICS="127.0.0.1:0")
        self.assertEqual(404, far.get("/")[0])
        self.assertEqual(404, far.get("/etc/passwd")[0])
        with socket.create_connection(("127.0.0.1", far.metrics_port()), 10) as end:
            end.sendall(b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            self.assertIn(b" 405 ", end.recv(1000))
        self.assertEqual(200, far.get("/healthz")[0])

    def test_option_wins(self):
        port = free_port()
        far = self.destination(
            METRICS="127.0.0.1:1", options={"args": ["--metrics", f"127.0.0.1:{port}"]}
        )
        self.assertEqual((200, "ok\n"), far.get("/healthz", port))

    def test_ipv6(self):
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("no IPv6 here")
        far = self.destination(METRICS="[::1]:0")
        with socket.create_connection(("::1", far.metrics_port()), 10) as end:
            end.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"HTTP/1.1 200 ", end.recv(1000))

    def test_off(self):
        far = self.destination(METRICS="off")
        self.assertNotRegex(far.process.stderr_text(), "metrics on port")

    def test_taken_address_is_a_warning(self):
        trees.small_tree(self.src)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            far = self.destination(METRICS=f"127.0.0.1:{taken.getsockname()[1]}")
            self.source(far.port).end()
            run = far.end()
        self.assertTrue(re.search("warning: .*metrics", run.stderr), run.stderr)
        self.assert_same()
