# SPDX-License-Identifier: Apache-2.0
"""Each --no-X leaves exactly that out."""

import os

from support import attributes, trees
from support.case import MAIN_TRANSPORTS, over


@over(*MAIN_TRANSPORTS)
class Omit:
    def setUp(self):
        super().setUp()
        self.need_root("owners and devices")
        self.file = os.path.join(self.src, "file")
        trees.write(self.file, b"x")

    def info(self, name: str = "file"):
        return os.lstat(os.path.join(self.dst, name))

    def test_no_owner(self):
        os.chown(self.file, 1234, 5678)
        self.sync("--no-owner")
        self.assertEqual((0, 0), (self.info().st_uid, self.info().st_gid))
        self.assert_noop(self.sync("--no-owner", "-i"))

    def test_no_perms(self):
        os.chmod(self.file, 0o6701)
        self.sync("--no-perms")
        self.assertNotEqual(0o6701, self.info().st_mode & 0o7777)
        self.assertEqual(0, self.info().st_mode & 0o7000)
        self.assert_noop(self.sync("--no-perms", "-i"))

    def test_no_perms_keeps_the_mode_of_an_old_file(self):
        trees.write(os.path.join(self.dst, "file"), b"older content", 0o604)
        self.sync("--no-perms")
        self.assertEqual(0o604, self.info().st_mode & 0o7777)

    def test_no_times(self):
        trees.set_mtime(self.file, 10**18)
        self.sync("--no-times")
        self.assertNotEqual(10**18, self.info().st_mtime_ns)

    def test_no_xattrs(self):
        os.setxattr(self.file, "user.a", b"1")
        attributes.set_acl(self.file, "u::rw-,u:33:r--,g::r--,m::r--,o::---")
        self.sync("--no-xattrs")
        copy = os.path.join(self.dst, "file")
        self.assertNotIn("user.a", os.listxattr(copy))
        self.assertIsNotNone(attributes.get_acl(copy))
        self.assert_noop(self.sync("--no-xattrs", "-i"))

    def test_no_acls(self):
        os.setxattr(self.file, "user.a", b"1")
        attributes.set_acl(self.file, "u::rw-,u:33:r--,g::r--,m::r--,o::---")
        self.sync("--no-acls")
        copy = os.path.join(self.dst, "file")
        self.assertIsNone(attributes.get_acl(copy))
        self.assertIn("user.a", os.listxattr(copy))
        self.assert_noop(self.sync("--no-acls", "-i"))

    def test_no_hardlinks(self):
        os.link(self.file, os.path.join(self.src, "second"))
        self.sync("--no-hardlinks")
        self.assertEqual(1, self.info().st_nlink)
        self.assertNotEqual(self.info().st_ino, self.info("second").st_ino)
        self.assert_noop(self.sync("--no-hardlinks", "-i"))

    def test_no_devices(self):
        os.mkfifo(os.path.join(self.src, "fifo"))
        os.mknod(os.path.join(self.src, "null"), 0o20666, os.makedev(1, 3))
        self.sync("--no-devices")
        self.assertFalse(os.path.lexists(os.path.join(self.dst, "null")))
        self.assertTrue(os.path.lexists(os.path.join(self.dst, "file")))

    def test_all_together_still_copy_content(self):
        trees.small_tree(self.src)
        options = [
            f"--no-{name}"
            for name in ("owner", "perms", "times", "xattrs", "acls", "hardlinks", "devices")
        ]
        self.sync(*options)
        self.assert_same(ignore=("owner", "group", "mode", "mtime", "xattr", "acl", "hardlink"))
