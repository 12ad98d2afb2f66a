# SPDX-License-Identifier: Apache-2.0
"""Run by a plain user: read-only directories, owners that cannot be set, refused attributes."""

import os
import signal

from support import trees
from support.case import ScratchCase
from support.program import PLAIN_USER
from support.wait import wait_until


class PlainUser(ScratchCase):
    def setUp(self):
        super().setUp()
        self.need_root("switching to a plain user")
        os.chown(self.dir, PLAIN_USER, PLAIN_USER)

    def sync(self, *options, expect=0):
        return self.volferry(
            "sync", "--json", *options, self.src, self.dst, expect=expect, user=PLAIN_USER
        )

    def give(self, root, owner=PLAIN_USER):
        for directory, _, names in os.walk(root):
            for path in (directory, *(os.path.join(directory, name) for name in names)):
                mtime = os.lstat(path).st_mtime_ns
                os.chown(path, owner, owner, follow_symlinks=False)
                trees.set_mtime(path, mtime)

    def test_read_only_directories(self):
        trees.write(os.path.join(self.src, "a/b/file"), b"x", 0o444)
        os.makedirs(os.path.join(self.src, "c"))
        self.give(self.src)
        for name in ("a/b", "a", "c", ""):
            os.chmod(os.path.join(self.src, name), 0o555)
        self.sync()
        self.assert_same()
        self.assert_noop(self.sync("-i"))

        path = os.path.join(self.src, "a/b/file")
        trees.write(path, b"changed")
        trees.write(os.path.join(self.src, "a/new"), b"new")
        self.give(self.src)
        self.sync("--delete")
        self.assert_same()
        os.unlink(path)
        self.sync("--delete")
        self.assert_same()

    def test_modes_of_read_only_directories_are_restored_after_a_signal(self):
        trees.write(os.path.join(self.src, "a/old"), b"x")
        self.give(self.src)
        os.chmod(os.path.join(self.src, "a"), 0o555)
        self.sync()
        os.chmod(os.path.join(self.src, "a"), 0o755)
        trees.write_random(os.path.join(self.src, "a/large"), 16 << 20, seed=1)
        self.give(self.src)
        os.chmod(os.path.join(self.src, "a"), 0o555)
        process = self.start("sync", "--bwlimit", "1M", self.src, self.dst, user=PLAIN_USER)
        wait_until(
            lambda: len(os.listdir(os.path.join(self.dst, "a"))) > 1,
            "a temporary file in the directory",
        )
        process.send(signal.SIGTERM)
        self.assertEqual(143, process.wait().code)
        self.assertEqual(0o555, os.stat(os.path.join(self.dst, "a")).st_mode & 0o7777)

    def test_foreign_owners_are_counted_once(self):
        for number in range(5):
            path = os.path.join(self.src, f"f{number}")
            trees.write(path, b"x", 0o644)
            os.chown(path, 4000 + number, 4000)
        os.chmod(self.src, 0o755)
        result = self.sync()
        self.assertGreaterEqual(result.summary["owner_skipped"], 5)
        self.assertEqual([], result.summary["errors"])
        warnings = [line for line in result.stderr.splitlines() if "owner" in line]
        self.assertEqual(1, len(warnings), f"\n{result}")
        self.assertRegex(warnings[0], r"^volferry: warning: owner of \d+ items not set")
        self.assert_same(ignore=("owner", "group"))
        again = self.sync("-i")
        self.assertEqual(0, again.summary["literal_bytes"])
        self.assertEqual(0, again.summary["files_transferred"])

    def test_setuid_of_a_file_whose_owner_cannot_be_set_is_not_given_away(self):
        path = os.path.join(self.src, "f")
        trees.write(path, b"x")
        os.chown(path, 0, 0)
        os.chmod(path, 0o4755)
        self.sync()
        info = os.stat(os.path.join(self.dst, "f"))
        self.assertEqual(PLAIN_USER, info.st_uid)
        self.assertEqual(0, info.st_mode & 0o4000, "setuid for another user than the source's")

    def test_device_that_cannot_be_made_is_named_and_others_arrive(self):
        trees.write(os.path.join(self.src, "file"), b"x", 0o644)
        os.mknod(os.path.join(self.src, "null"), 0o20666, os.makedev(1, 3))
        result = self.sync(expect=3)
        self.assert_named(result, "null")
        self.assertTrue(os.path.exists(os.path.join(self.dst, "file")))

    def test_refused_xattr_is_named_and_others_arrive(self):
        trees.write(os.path.join(self.src, "capable"), b"x", 0o755)
        from support import attributes

        attributes.set_capability(os.path.join(self.src, "capable"), 13)
        trees.write(os.path.join(self.src, "zz"), b"x", 0o644)
        self.give(self.src)
        attributes.set_capability(os.path.join(self.src, "capable"), 13)
        result = self.sync(expect=3)
        self.assert_named(result, "capable")
        self.assertTrue(os.path.exists(os.path.join(self.dst, "zz")))

    def test_destination_without_permission(self):
        trees.write(os.path.join(self.src, "file"), b"x", 0o644)
        os.makedirs(self.dst, 0o755)
        os.chown(self.dst, 0, 0)
        result = self.sync(expect=(3, 21))
        self.assertIn("ermission denied", result.stderr)
        self.assertEqual([], os.listdir(self.dst))
