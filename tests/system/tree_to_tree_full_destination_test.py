# SPDX-License-Identifier: Apache-2.0
"""A full destination: exit 20, every name old or new, nothing left behind, and the next run goes
on.
"""

import os
import subprocess

from support import blockdev, compare, trees
from support.case import MAIN_TRANSPORTS, over

MIB = trees.MIB


@over(*MAIN_TRANSPORTS)
class Full:
    def setUp(self):
        super().setUp()
        self.mounted = blockdev.mount_tmpfs(self, self.path("small"), "24m")
        self.dst = os.path.join(self.mounted, "dst")
        for number in range(6):
            trees.write_random(os.path.join(self.src, f"f{number}"), 2 * MIB, seed=number)
        self.sync()
        self.assert_same()
        self.old = compare.snapshot(self.dst)

    def overfill(self):
        for number in range(6):
            trees.write_random(os.path.join(self.src, f"f{number}"), 2 * MIB, seed=100 + number)
        for number in range(20):
            trees.write_random(os.path.join(self.src, f"g{number}"), 2 * MIB, seed=200 + number)

    def test_says_so_and_loses_nothing(self):
        self.overfill()
        result = self.sync(expect=20)
        self.assertRegex(result.stderr.lower(), "space|full")
        self.assertEqual(
            1, sum(line.startswith("volferry: error: ") for line in result.stderr.splitlines())
        )
        new = compare.snapshot(self.src)
        for path, entry in compare.snapshot(self.dst).items():
            if entry.kind == "file" and not compare.TEMPORARY.fullmatch(path):
                versions = [tree[path].digest for tree in (self.old, new) if path in tree]
                self.assertIn(entry.digest, versions, f"{path!r} is neither old nor new")
        for path in self.old:
            self.assertTrue(os.path.lexists(os.path.join(os.fsencode(self.dst), path)), path)

    def test_next_run_with_less_completes(self):
        self.overfill()
        self.sync(expect=20)
        for number in range(20):
            os.unlink(os.path.join(self.src, f"g{number}"))
        self.sync("--delete")
        self.assert_same()
        self.assert_no_temporaries()

    def test_one_file_larger_than_everything(self):
        trees.write_random(os.path.join(self.src, "huge"), 40 * MIB, seed=9)
        self.sync(expect=20)
        self.assertFalse(os.path.exists(os.path.join(self.dst, "huge")))
        os.unlink(os.path.join(self.src, "huge"))
        self.sync()
        self.assert_same()
        self.assert_no_temporaries()

    def test_inplace_too(self):
        trees.write_random(os.path.join(self.src, "f0"), 40 * MIB, seed=9)
        self.sync("--inplace", expect=20)

    def test_read_only_file_system(self):
        """Both ends end with the same code, however soon the small pass is over."""
        trees.write_random(os.path.join(self.src, "one more"), 5000, seed=9)
        subprocess.run(["mount", "-o", "remount,ro", self.mounted], check=True)
        self.addCleanup(subprocess.run, ["mount", "-o", "remount,rw", self.mounted], check=False)
        for _ in range(5):
            result = self.sync(expect=21)
            self.assertIn("Read-only file system", result.stderr)

    def test_out_of_inodes(self):
        mounted = blockdev.mount(
            self, self.path("few"), "-t", "tmpfs", "-o", "size=64m,nr_inodes=50,mode=0755", "tmpfs"
        )
        many = self.path("many")
        trees.small_tree(many, files=200)
        self.sync(source=many, destination=os.path.join(mounted, "dst"), expect=20)
