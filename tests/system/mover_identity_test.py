# SPDX-License-Identifier: Apache-2.0
"""Movers refuse a peer that is not the one they should meet, by themselves, before a byte is written."""

import json
import os
import re

from support import trees
from support.mover import MoverCase
from support.wait import wait_until

# What the destination has completed, and the transfer that follows it.
KNOWN = {"REPLICATION_ID": "db", "EPOCH": "2-aa", "SEQ": 7, "ATTEMPT": "try-7", "SOURCE_VOLUME_ID": "volume-1"}
NEXT = KNOWN | {"SEQ": 8, "ATTEMPT": "try-8"}


class Identity(MoverCase):
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        trees.write(os.path.join(self.dst, "precious"), b"newer data")

    def untouched(self):
        self.assertEqual(["precious"], os.listdir(self.dst))

    def refused(self, reason: str, **changes) -> str:
        """A push with these changes is refused at both ends; returns the token. The destination still listens."""
        far = self.destination(METRICS="127.0.0.1:0", **KNOWN)
        self.assertEqual((204, ""), far.get("/refusal"))
        run = self.source(far.port, **(NEXT | changes)).end(30)
        self.assertEqual(reason, run.result["reason"], f"\n{run}")
        self.assertFalse(run.result["retryable"])
        token = run.result["token"]
        self.assertRegex(token, "^[0-9a-f]{12}$")
        self.assertIn("token=" + token, run.stderr)
        self.untouched()
        wait_until(lambda: "token=" + token in far.process.stderr_text(), "the refusal at the destination")
        self.assertIn(reason, far.process.stderr_text())
        status, text = far.get("/refusal")
        self.assertEqual(200, status)
        told = json.loads(text)
        self.assertEqual((reason, token), (told["reason"], told["token"]))
        self.assertIn("nothing was written", told["message"])
        self.source(far.port, **NEXT).end()
        self.assertEqual(1, far.end().result["sessions"])  # the refused one is none
        self.assert_same()
        return token

    def test_the_next_transfer(self):
        far = self.destination(**KNOWN)
        self.source(far.port, **NEXT).end()
        far.end()
        self.assert_same()

    def test_plain_retry(self):
        far = self.destination(**KNOWN)
        self.source(far.port, **KNOWN).end()
        far.end()
        self.assert_same()

    def test_foreign_volume(self):
        self.refused("PeerIdentityMismatch", SOURCE_VOLUME_ID="volume-2")

    def test_foreign_replication(self):
        self.refused("PeerIdentityMismatch", REPLICATION_ID="web")

    def test_stale_epoch(self):
        self.refused("StaleEpoch", EPOCH="1-aa")

    def test_promoted_separately(self):
        self.refused("PeerIdentityMismatch", EPOCH="2-bb")

    def test_rolled_back_source(self):
        self.refused("SourceBehindPeer", SEQ=3)

    def test_same_number_from_another_attempt(self):
        self.refused("SourceBehindPeer", SEQ=7)

    def test_change_of_roles(self):
        far = self.destination(**KNOWN)
        self.source(far.port, **(NEXT | {"EPOCH": "3-cc", "SEQ": 1, "SOURCE_VOLUME_ID": "volume-2"})).end()
        run = far.end()
        self.assertEqual("3-cc", run.result["peer"]["epoch"])
        self.assert_same()

    def test_times_are_not_believed_after_a_gap(self):
        """Other content of the same size and time: only a transfer that follows may take it for equal."""
        path = os.path.join(self.src, "same-size-and-time")
        copy = os.path.join(self.dst, "same-size-and-time")
        gaps = {
            "rolled back": {"SEQ": 12, "ATTEMPT": "try-12"},
            "a primary since": {"EPOCH": "3-cc", "SEQ": 1},
        }
        for name, changes in gaps.items():
            with self.subTest(name):
                trees.write(path, b"the source's content")
                trees.write(copy, b"some other content..")
                for file in (path, copy):
                    os.utime(file, (1_700_000_000, 1_700_000_000))
                far = self.destination(**KNOWN)
                self.source(far.port, **(NEXT | changes)).end()
                far.end()
                self.assert_same()

    def test_token_permits_one_conflict(self):
        token = self.refused("SourceBehindPeer", SEQ=3)
        for end in ("source", "destination"):
            with self.subTest(acknowledged_at=end):
                near, far = (NEXT | {"SEQ": 3}, KNOWN)
                if end == "source":
                    near = near | {"ACKNOWLEDGE": "0123456789ab," + token}
                else:
                    far = far | {"ACKNOWLEDGE": token}
                listener = self.destination(**far)
                self.source(listener.port, **near).end()
                listener.end()
                self.assert_same()
        # Facts that changed need another token.
        listener = self.destination(**(KNOWN | {"SEQ": 9}))
        run = self.source(listener.port, **(NEXT | {"SEQ": 3, "ACKNOWLEDGE": token})).end(30)
        self.assertNotEqual(token, run.result["token"])
        self.assertTrue(re.fullmatch("[0-9a-f]{12}", run.result["token"]))
        listener.process.close()
