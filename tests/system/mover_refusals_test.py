# SPDX-License-Identifier: Apache-2.0
"""Movers that cannot, may not or must not: exit codes, reasons, and a destination that keeps
listening.
"""

import os

from support import blockdev, trees
from support.mover import MAX_RESULT, MoverCase, free_port, make_keys
from support.wait import wait_until

MIB = trees.MIB


class Refusals(MoverCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.dst)
        trees.small_tree(self.src)

    def assert_result(self, run, reason: str, retryable: bool, *mentions: str):
        self.assertEqual("failed", run.result["result"], f"\n{run}")
        self.assertEqual(reason, run.result["reason"], f"\n{run}")
        self.assertEqual(retryable, run.result["retryable"], f"\n{run}")
        self.assertLessEqual(len(run.result["message"].encode()), 512)
        for mention in mentions:
            self.assertIn(mention, run.result["message"])

    def complete(self, far):
        """The destination still takes a right source."""
        self.source(far.port).end()
        run = far.end()
        self.assert_same()
        return run

    def test_wrong_key(self):
        far = self.destination()
        self.secrets.append("ab" * 32)
        wrong = make_keys(self.path("wrong"), key="ab" * 32)
        run = self.source(far.port, KEYS=wrong).end(11)
        self.assert_result(run, "AuthenticationRefused", False)
        stranger = make_keys(self.path("stranger"), identity="stranger", key=self.key)
        self.source(far.port, KEYS=stranger).end(11)
        self.assertEqual([], os.listdir(self.dst))
        self.complete(far)

    def test_nobody_listens(self):
        run = self.source(free_port(), CONNECT_TIMEOUT="1s").end(10, timeout=60)
        self.assert_result(run, "CannotConnect", True, "127.0.0.1")

    def test_name_that_does_not_resolve(self):
        run = self.source(8000, ADDRESS="nowhere.invalid", CONNECT_TIMEOUT=1).end(10, timeout=100)
        self.assert_result(run, "CannotConnect", True, "nowhere.invalid")

    def test_full_destination(self):
        small = blockdev.mount_tmpfs(self, self.path("small"), "4m")
        trees.write_random(os.path.join(self.src, "large"), 16 * MIB, seed=1)
        far = self.destination(small)
        run = self.source(far.port).end(20)
        self.assert_result(run, "DestinationFull", False)
        self.assert_result(far.end(20), "DestinationFull", False)

    def test_too_small_device(self):
        one = blockdev.loop_of_size(self, self.path("one.img"), 16 * MIB)
        two = blockdev.loop_of_size(self, self.path("two.img"), 8 * MIB)
        far = self.destination(two)
        run = self.source(far.port, one).end(23)
        self.assert_result(run, "DestinationTooSmall", False)
        self.assert_result(far.end(23), "DestinationTooSmall", False)

    def test_volume_modes_differ(self):
        image = self.path("image")
        trees.write(image, b"precious")
        far = self.destination(image)
        run = self.source(far.port).end(30)
        self.assert_result(run, "IdentityRefused", False, "volumeMode", "Block", "Filesystem")
        wait_until(lambda: "volumeMode" in far.process.stderr_text(), "the destination's word")
        with open(image, "rb") as stream:
            self.assertEqual(b"precious", stream.read())
        # It waits on for a source that fits.
        other = self.path("other")
        trees.write(other, b"new content")
        self.source(far.port, other).end()
        far.end()
        with open(image, "rb") as stream:
            self.assertEqual(b"new content", stream.read())

    def test_a_refusal_with_many_streams(self):
        """The connections that join too late do not hide the reason."""
        image = self.path("image")
        trees.write(image, b"precious")
        far = self.destination(image)
        for _ in range(10):
            run = self.source(far.port, STREAMS=8).end(30)
            self.assert_result(run, "IdentityRefused", False, "volumeMode")

    def test_reads_are_refused(self):
        trees.write(os.path.join(self.dst, "secret"), b"x")
        psk = self.path("psk")
        trees.write(psk, f"pair:{self.key}\n".encode(), mode=0o600)
        far = self.destination()
        url = f"tls://127.0.0.1:{far.port}"
        stolen = self.path("stolen")
        self.volferry("sync", "--psk-file", psk, url, stolen, expect=2)
        self.assertFalse(os.path.exists(os.path.join(stolen, "secret")))
        self.volferry("verify", "--psk-file", psk, self.src, url, expect=2)
        self.complete(far)

    def test_only_whole_transfers_count(self):
        psk = self.path("psk")
        trees.write(psk, f"pair:{self.key}\n".encode(), mode=0o600)
        far = self.destination()
        url = f"tls://127.0.0.1:{far.port}"
        self.volferry("sync", "-n", "--psk-file", psk, self.src, url, expect=2)
        self.volferry("sync", "--psk-file", psk, self.src, url + "/below", expect=2)
        self.assertEqual([], os.listdir(self.dst))
        self.complete(far)

    def test_source_that_dies(self):
        trees.write_random(os.path.join(self.src, "large"), 16 * MIB, seed=1)
        far = self.destination()
        near = self.source(far.port, BANDWIDTH_LIMIT="2M")
        wait_until(lambda: os.listdir(self.dst), "the first files")
        near.process.popen.kill()
        near.process.popen.wait()
        self.complete(far)

    def test_missing_volume(self):
        run = self.any_mover("destination", VOLUME=self.path("nowhere")).end(2)
        self.assert_result(run, "Usage", False, "VOLFERRY_VOLUME", "nowhere")

    def test_missing_keys(self):
        run = self.any_mover("destination", VOLUME=self.dst, KEYS=self.path("nowhere")).end(2)
        self.assert_result(run, "Usage", False, "nowhere")

    def test_long_and_evil_names_fit_into_the_result(self):
        deep = self.src
        for _ in range(12):
            deep = os.path.join(deep, '"\\' * 120)
        self.need_root("an immutable file")
        self.need_tool("chattr")
        os.makedirs(deep)
        trees.write(os.path.join(deep, "a\x01\nb\x7f\u202e"), b"old")
        far = self.destination()
        self.source(far.port).end()
        far.end()
        victim = os.path.join(deep, "a\x01\nb\x7f\u202e").replace(self.src, self.dst)
        trees.write(os.path.join(deep, "a\x01\nb\x7f\u202e"), b"new content")
        from subprocess import run as command

        if command(["chattr", "+i", victim], capture_output=True, check=False).returncode != 0:
            self.skipTest("no immutable files on this file system")
        self.addCleanup(command, ["chattr", "-i", victim], check=False)
        far = self.destination()
        near = self.source(far.port).end(3)
        for each in (near, far.end(3)):
            self.assertLessEqual(len(each.lines[-1].encode()), MAX_RESULT)
            self.assertNotIn("\n", each.result["message"])
