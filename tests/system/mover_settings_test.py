# SPDX-License-Identifier: Apache-2.0
"""The mover's environment: what is refused, and how that is said."""

import os

from support import trees
from support.mover import MoverCase


class Settings(MoverCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.dst)

    def refused(self, role: str, *mentions: str, **env):
        run = self.any_mover(role, **env).end(2)
        self.assertEqual(("failed", "Usage"), (run.result["result"], run.result["reason"]))
        self.assertFalse(run.result["retryable"])
        lines = [line for line in run.stderr.splitlines() if line.startswith("volferry: error: ")]
        self.assertEqual(1, len(lines), f"\n{run}")
        for mention in mentions:
            self.assertIn(mention, lines[0])
            self.assertIn(mention, run.result["message"])
        return run

    def test_unknown_variable(self):
        self.refused("source", "VOLFERRY_ADRESS", ADRESS="x")
        self.refused("destination", "VOLFERRY_PORTS", PORTS="8000")

    def test_variables_of_services_are_no_settings(self):
        self.refused("destination", "/data", PORT_8000_TCP="tcp://10.0.0.1:8000", SERVICE_HOST="10.0.0.1", PORT="tcp://10.0.0.1:8000")

    def test_bad_values(self):
        cases = {
            "PORT": "0",
            "LISTEN": "x:y",
            "SEQ": "-1",
            "EPOCH": "nonce",
            "COMPRESSION": "zstd:99",
            "BANDWIDTH_LIMIT": "fast",
            "STREAMS": "0",
            "MEMORY": "1Mi",
            "IO": "magic",
            "DIRECT": "maybe",
            "DELETE": "yes",
            "PRESERVE": "owner,colour",
            "VERIFY": "some",
            "INPLACE": "1",
            "RETRIES": "many",
            "CONNECT_TIMEOUT": "0",
            "TIMEOUT": "-5",
            "SYNC_TIMEOUT": "5x",
            "METRICS": "9100",
            "LOG_LEVEL": "loud",
            "ATTEMPT": "a\nb",
            "REPLICATION_ID": "r" * 64,
        }
        for name, value in cases.items():
            for role in ("source", "destination"):
                with self.subTest(name=name, role=role):
                    self.refused(role, f"VOLFERRY_{name}", **{"ADDRESS": "localhost", name: value})

    def test_address_is_needed(self):
        self.refused("source", "VOLFERRY_ADDRESS", VOLUME=self.dst)

    def test_key_is_not_printed(self):
        trees.write(os.path.join(self.keys, "psk"), (self.key + "zz").encode(), mode=0o600)
        self.refused("destination", os.path.join(self.keys, "psk"), VOLUME=self.dst)

    def test_roles(self):
        for words in ([], ["both"], ["source", "destination"]):
            with self.subTest(words):
                run = self.volferry("mover", *words, expect=2)
                self.assertIn("source or destination", run.stderr)

    def test_empty_means_default(self):
        far = self.destination(COMPRESSION="", BANDWIDTH_LIMIT="", SYNC_TIMEOUT="", RETRIES="")
        trees.small_tree(self.src)
        self.source(far.port, EPOCH="", MEMORY="", LOG_LEVEL="").end()
        far.end()
        self.assert_same()

    def test_all_settings_together(self):
        trees.small_tree(self.src)
        far = self.destination(
            REPLICATION_ID="db",
            MEMORY="64Mi", THREADS=2, IO="threads", DIRECT="off", TIMEOUT="30s", LOG_LEVEL="debug"
        )
        self.source(
            far.port,
            ADDRESS="localhost",
            MEMORY="64Mi",
            THREADS=1,
            STREAMS=2,
            IO="threads",
            DIRECT="off",
            COMPRESSION="zstd:3",
            INPLACE="true",
            RETRIES=0,
            CONNECT_TIMEOUT="30",
            SYNC_TIMEOUT="1m30s",
            VOLUME_SIZE=1 << 30,
            SOURCE_VOLUME_ID="driver/handle",
            REPLICATION_ID="db",
            LOG_LEVEL="error",
        ).end()
        run = far.end()
        self.assertEqual("db", run.result["peer"]["replication_id"])
        self.assertEqual("driver/handle", run.result["peer"]["source_volume_id"])
        self.assertEqual(1 << 30, run.result["peer"]["size"])
        self.assert_same()

    def test_termination_log_that_cannot_be_written(self):
        mover = self.any_mover(
            "destination", VOLUME=self.path("nowhere"), TERMINATION_LOG=self.path("no/folder")
        )
        run = mover.process.wait()
        self.assert_exit(run, 2)
        self.assertIn("warning: termination log", run.stderr)
        self.assertTrue(run.stderr.splitlines()[-1].startswith("volferry: error: "))
