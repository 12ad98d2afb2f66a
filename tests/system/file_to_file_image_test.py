# SPDX-License-Identifier: Apache-2.0
"""Image mode between regular files: one file to one file, over each transport."""

import os
import resource
import signal

from support import compare, trees
from support.case import ALL_TRANSPORTS, LOCAL, MAIN_TRANSPORTS, ScratchCase, TLS_PUSH, over
from support.program import PLAIN_USER

MIB = trees.MIB


@over(*ALL_TRANSPORTS)
class FileToFile:
    def setUp(self):
        super().setUp()
        self.src, self.dst = self.path("a.img"), self.path("b.img")
        trees.write(self.dst, b"")  # a server needs something to serve

    def check(self):
        self.assertEqual(os.path.getsize(self.src), os.path.getsize(self.dst))
        self.assertEqual(compare.file_digest(self.src), compare.file_digest(self.dst))

    def test_sizes(self):
        for size in (0, 1, 513, 4095, MIB + 1, 5 * MIB):
            with self.subTest(size):
                trees.write_random(self.src, size, seed=size)
                self.sync()
                self.check()

    def test_longer_destination_is_cut(self):
        trees.write_random(self.src, 100_000, seed=1)
        trees.write_random(self.dst, 3 * MIB, seed=2)
        self.sync()
        self.check()

    def test_second_run_and_small_change(self):
        trees.write_random(self.src, 16 * MIB, seed=1)
        self.sync()
        self.assertEqual(0, self.sync().summary["literal_bytes"])
        trees.overwrite(self.src, 7 * MIB, b"changed")
        result = self.sync()
        self.check()
        if self.remote:  # locally the file is copied whole beside the old one
            self.assertLessEqual(result.summary["literal_bytes"], 4096)

    def test_metadata_of_the_file(self):
        trees.write(self.src, b"x" * 5000, 0o640, mtime_ns=10**18 + 1)
        os.setxattr(self.src, "user.a", b"1")
        self.sync()
        info = os.stat(self.dst)
        self.assertEqual((0o640, 10**18 + 1), (info.st_mode & 0o7777, info.st_mtime_ns))
        self.assertEqual(b"1", os.getxattr(self.dst, "user.a"))

    def test_sparse(self):
        trees.sparse_file(self.src, 1 << 30, [(0, 4096), (1 << 29, 65536)], seed=1)
        self.sync()
        self.check()
        self.assertLessEqual(os.stat(self.dst).st_blocks * 512, 1 * MIB)


@over(LOCAL)
class NewFile:
    def test_destination_does_not_exist_yet(self):
        trees.write_random(self.path("a"), MIB, seed=1)
        self.sync(source=self.path("a"), destination=self.path("b"))
        self.assertEqual(compare.file_digest(self.path("a")), compare.file_digest(self.path("b")))

    def test_its_folder_is_missing(self):
        trees.write(self.path("a"), b"x")
        result = self.sync(
            source=self.path("a"), destination=self.path("no/such/b"), expect=(2, 21)
        )
        self.assert_error(result, (2, 21), "no/such")


class Failures(ScratchCase):
    def test_unreadable_source(self):
        self.need_root("switching to a plain user")
        trees.write(self.path("a"), b"x", 0o600)
        os.chown(self.dir, PLAIN_USER, PLAIN_USER)
        result = self.volferry("sync", self.path("a"), self.path("b"), user=PLAIN_USER, expect=22)
        self.assert_error(result, 22, self.path("a"))
        self.assertFalse(os.path.exists(self.path("b")))

    def test_write_error(self):
        """A file size limit makes the kernel refuse the write (EFBIG)."""
        trees.write_random(self.path("a"), 4 * MIB, seed=1)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

        result = self.volferry("sync", self.path("a"), self.path("b"), preexec=limit, expect=21)
        self.assert_error(result, 21, "b")
        self.assertFalse(os.path.exists(self.path("b")), "half a file under its own name")


@over(TLS_PUSH, *MAIN_TRANSPORTS[2:])
class Verified:
    def test_verify_of_an_image(self):
        self.src, self.dst = self.path("a"), self.path("b")
        trees.write_random(self.src, 3 * MIB + 5, seed=1)
        trees.write(self.dst, b"")
        self.sync("--verify")
        self.assertEqual(compare.file_digest(self.src), compare.file_digest(self.dst))
