# SPDX-License-Identifier: Apache-2.0
"""On xfs and btrfs: local copies share extents, and a small change to a large file leaves the rest
of it shared.
"""

import os
import subprocess

from support import blockdev, extents, trees
from support.case import MAIN_TRANSPORTS, ScratchCase, over

SIZE = 64 << 20


class Reflinks:
    kind = ""

    def setUp(self):
        super().setUp()
        self.mounted = blockdev.mount_image(self, self.kind, self.dir, self.kind, 640 << 20)
        self.src = os.path.join(self.mounted, "src")
        self.dst = os.path.join(self.mounted, "dst")
        self.file = os.path.join(self.src, "f")
        self.copy = os.path.join(self.dst, "f")
        trees.write_random(self.file, SIZE, seed=1)
        os.sync()


class LocalCopies(Reflinks):
    def test_new_file_shares_all_extents(self):
        self.volferry("sync", self.src, self.dst)
        self.assert_same()
        self.assertGreaterEqual(extents.shared_bytes(self.copy), SIZE * 0.95)

    def test_writing_to_the_copy_leaves_the_source_alone(self):
        self.volferry("sync", self.src, self.dst)
        trees.overwrite(self.copy, 0, b"scribble")
        with open(self.file, "rb") as stream:
            self.assertEqual(trees.random_bytes(SIZE, 1)[:100], stream.read(100))

    def test_punched_hole_arrives(self):
        self.volferry("sync", self.src, self.dst)
        subprocess.run(
            ["fallocate", "-p", "-o", str(16 << 20), "-l", str(16 << 20), self.file], check=True
        )
        os.utime(self.file)
        self.volferry("sync", self.src, self.dst)
        self.assert_same()


class XfsLocal(LocalCopies, ScratchCase):
    kind = "xfs"


class BtrfsLocal(LocalCopies, ScratchCase):
    kind = "btrfs"


class KeptSharing(Reflinks):
    """A snapshot of the destination keeps sharing what did not change (rsync#799)."""

    def test_small_change(self):
        self.src = self.path("src")  # another file system: nothing can be cloned from the source
        self.file = os.path.join(self.src, "f")
        trees.write_random(self.file, SIZE, seed=1)
        for options in ((), ("--inplace",)):
            with self.subTest(options):
                self.sync()
                snapshot = os.path.join(self.mounted, "snapshot")
                subprocess.run(["cp", "--reflink=always", self.copy, snapshot], check=True)
                trees.overwrite(self.file, SIZE // 2 + 8192, b"changed %d" % len(options))
                self.sync(*options)
                self.assert_same()
                self.assertGreaterEqual(extents.shared_bytes(snapshot), SIZE * 0.9)
                os.unlink(snapshot)


@over(*MAIN_TRANSPORTS)
class Xfs(KeptSharing):
    kind = "xfs"


@over(*MAIN_TRANSPORTS)
class Btrfs(KeptSharing):
    kind = "btrfs"
