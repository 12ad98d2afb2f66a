# SPDX-License-Identifier: Apache-2.0
"""Mount points below the source, and file systems of different kinds at the two ends."""

import os
import subprocess

from support import blockdev, trees
from support.case import LOCAL, MAIN_TRANSPORTS, over


@over(*MAIN_TRANSPORTS)
class OneFileSystem:
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        inner = os.path.join(self.src, "mounted")
        blockdev.mount_tmpfs(self, inner, "4m")
        trees.write(os.path.join(inner, "inside"), b"x")

    def test_crossed_by_default(self):
        self.sync()
        self.assert_same()

    def test_x_leaves_the_mount_point_empty(self):
        for option in ("-x", "--one-file-system"):
            with self.subTest(option):
                self.sync(option)
                self.assertTrue(os.path.isdir(os.path.join(self.dst, "mounted")))
                self.assertFalse(os.path.exists(os.path.join(self.dst, "mounted/inside")))

    def test_bind_mount_of_the_same_file_system(self):
        other = self.path("other")
        trees.write(os.path.join(other, "file"), b"bound")
        blockdev.mount(self, os.path.join(self.src, "bound"), "--bind", other)
        self.sync()
        self.assert_same()


@over(LOCAL)
class EqualInodeNumbers:
    def test_are_not_hard_links_across_file_systems(self):
        for name in ("one", "two"):
            mounted = blockdev.mount_image(self, "ext4", self.dir, name, 16 << 20)
            trees.write(os.path.join(mounted, "file"), name.encode())
            os.link(os.path.join(mounted, "file"), os.path.join(mounted, "link"))
            blockdev.mount(self, os.path.join(self.src, name), "--bind", mounted)
        self.assertEqual(
            os.stat(os.path.join(self.src, "one/file")).st_ino,
            os.stat(os.path.join(self.src, "two/file")).st_ino,
        )
        self.sync()
        self.assert_same()


@over(*MAIN_TRANSPORTS)
class BetweenFileSystems:
    def check(self, kind: str, size: int):
        self.need_root("owners and mounts")
        mounted = blockdev.mount_image(self, kind, self.dir, kind, size)
        trees.metadata_tree(self.src)
        if kind == "xfs":  # whose link targets end at 1024 bytes
            os.unlink(os.path.join(self.src, "links", "long"))
        self.dst = os.path.join(mounted, "dst")
        # Each file system has its own range of times; what it clamps is its own matter.
        far = tuple(
            f"times/{prefix}{name}".encode()
            for prefix in ("", "dir-")
            for name in ("far", "y2106", "y1901")
        )
        self.sync()
        self.assert_same(except_paths=far)
        back = self.path("back")
        self.sync(source=self.dst, destination=back)
        self.assert_same(a=self.dst, b=back)

    def test_xfs(self):
        self.check("xfs", 320 << 20)

    def test_btrfs(self):
        self.check("btrfs", 256 << 20)

    def test_whole_ext4_volumes(self):
        self.need_root("owners and mounts")
        self.src = blockdev.mount_image(self, "ext4", self.dir, "from", 64 << 20)
        self.dst = blockdev.mount_image(self, "ext4", self.dir, "to", 64 << 20)
        trees.small_tree(self.src)
        self.sync("--delete")
        self.assertTrue(os.path.isdir(os.path.join(self.dst, "lost+found")))
        self.assert_same(except_paths=(b"lost+found",))
        self.assert_noop(self.sync("-i", "--delete"))

    def test_to_tmpfs(self):
        self.need_root("owners and mounts")
        mounted = blockdev.mount_tmpfs(self, self.path("tmpfs"), "64m")
        trees.small_tree(self.src)
        trees.sparse_file(os.path.join(self.src, "sparse"), 32 << 20, [(1 << 20, 4096)], seed=1)
        self.dst = os.path.join(mounted, "dst")
        self.sync_and_check()

    def test_vfat_settles(self):
        """Times of two seconds and no owners: the second run must not copy again."""
        self.need_tool("mkfs.vfat")
        image = self.path("vfat.img")
        device = blockdev.loop_of_size(self, image, 32 << 20)
        subprocess.run(["mkfs.vfat", device], check=True, capture_output=True)
        mounted = blockdev.mount(self, self.path("vfat"), device)
        trees.small_tree(self.src)
        self.dst = os.path.join(mounted, "dst")
        options = ("--no-owner", "--no-perms", "--no-xattrs", "--no-acls")
        self.sync(*options)
        again = self.sync(*options)
        self.assertEqual(0, again.summary["files_transferred"], f"\n{again}")
