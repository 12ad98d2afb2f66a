# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM end a sync cleanly, over every transport."""

import os
import signal

from support import compare, trees
from support.case import ALL_TRANSPORTS, over
from support.program import parse_events
from support.wait import wait_until


@over(*ALL_TRANSPORTS)
class Signals:
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        trees.write_random(os.path.join(self.src, "large"), 16 << 20, seed=1)

    def check(self, number: int, code: int):
        process = self.start_sync("--bwlimit", "2M")
        wait_until(
            lambda: os.path.isdir(self.dst) and compare.temporaries(self.dst),
            "the sync to be under way",
        )
        process.send(number)
        result = parse_events(process.wait(30))
        self.assert_exit(result, code)
        self.assertEqual("failed", result.summary["result"])
        self.assertEqual(code, result.summary["exit_code"])
        self.assertFalse(os.path.exists(os.path.join(self.dst, "large")))
        self.sync()
        self.assert_same()
        self.assert_no_temporaries()

    def test_interrupt(self):
        self.check(signal.SIGINT, 130)

    def test_terminate(self):
        self.check(signal.SIGTERM, 143)
