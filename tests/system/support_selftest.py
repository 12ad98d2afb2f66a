# SPDX-License-Identifier: Apache-2.0
"""The comparator and the builders themselves: exact copies pass, each single kind of tampering is
reported.
"""

import os
import shutil
import subprocess
import unittest

from support import attributes, compare, trees
from support.case import ScratchCase


class ExactCopies(ScratchCase):
    def setUp(self):
        super().setUp()
        self.need_root("owners, devices and trusted xattrs")

    def test_rsync_copy_of_everything_is_accepted(self):
        self.need_tool("rsync")
        trees.metadata_tree(self.src)
        # The negative window makes rsync compare nanoseconds; without it times of the same second
        # stay as they are.
        command = [
            "rsync",
            "-aHAXS",
            "--numeric-ids",
            "--modify-window=-1",
            self.src + "/",
            self.dst,
        ]
        subprocess.run(command, check=True)
        self.assertEqual([], compare.compare(self.src, self.dst))

    def test_cp_copy_of_odd_names_is_accepted(self):
        trees.odd_names_tree(self.src)
        subprocess.run(["cp", "-a", self.src, self.dst], check=True)
        self.assertEqual([], compare.compare(self.src, self.dst))

    def test_trees_deeper_than_path_max(self):
        for root in (self.src, self.dst):
            os.close(trees.deep_path(root, 40))
        deepest = max(compare.snapshot(self.src), key=len)
        self.assertGreater(len(deepest), 4096)
        self.assertEqual([], compare.compare(self.src, self.dst, ignore=("mtime",)))


class Tampering(ScratchCase):
    def setUp(self):
        super().setUp()
        self.need_root("owners, devices and trusted xattrs")
        trees.metadata_tree(self.src)
        self.copy_afresh()

    def copy_afresh(self):
        shutil.rmtree(self.dst, ignore_errors=True)
        subprocess.run(["cp", "-a", "--sparse=always", self.src, self.dst], check=True)
        self.assertEqual([], compare.compare(self.src, self.dst))

    def tamper(self, path, action, restore_mtime=True):
        target = os.path.join(self.dst, path)
        before = os.lstat(target).st_mtime_ns
        action(target)
        if restore_mtime:
            trees.set_mtime(target, before)
        return {p.decode(): set(kinds) for p, kinds in compare.compare(self.src, self.dst)}

    def test_each_single_change_is_reported(self):
        def change_acl(path):
            attributes.set_acl(path, "u::rw-,u:65534:rw-,g::rw-,m::rw-,o::r--")

        def fill_hole(path):
            with open(path, "r+b") as stream:
                stream.seek(32 << 20)
                stream.write(bytes(1 << 20))

        def relink(path):
            os.unlink(path)
            os.symlink("elsewhere", path)
            os.chown(path, 102, 202, follow_symlinks=False)

        def other_device(path):
            info = os.lstat(path)
            os.unlink(path)
            os.mknod(path, info.st_mode, os.makedev(0, 1))
            os.chown(path, 3, 6)

        def to_fifo(path):
            os.unlink(path)
            os.mkfifo(path)

        cases = {
            "one byte": ("plain", lambda p: trees.overwrite(p, 3, b"X"), {"content"}),
            "size": (
                "plain",
                lambda p: trees.overwrite(p, 0, b"longer than before"),
                {"content", "size"},
            ),
            "mode": ("owned", lambda p: os.chmod(p, 0o777), {"mode"}),
            "setuid": ("setid/setuid", lambda p: os.chmod(p, 0o2755), {"mode"}),
            "owner": ("empty", lambda p: os.chown(p, 1, 0), {"owner"}),
            "group": ("empty-dir", lambda p: os.chown(p, 0, 1), {"group"}),
            "link owner": (
                "links/up",
                lambda p: os.chown(p, 9, 204, follow_symlinks=False),
                {"owner"},
            ),
            "xattr": ("xattr/user", lambda p: os.setxattr(p, "user.empty", b"1"), {"xattr"}),
            "trusted": (
                "xattr/user",
                lambda p: os.removexattr(p, "trusted.overlay.opaque"),
                {"xattr"},
            ),
            "capability": (
                "xattr/capable",
                lambda p: os.removexattr(p, "security.capability"),
                {"xattr"},
            ),
            "acl": ("acl/masked", change_acl, {"acl"}),
            "default acl": (
                "acl/inherit",
                lambda p: os.removexattr(p, attributes.DEFAULT),
                {"acl"},
            ),
            "target": ("links/dangling", relink, {"target"}),
            "rdev": ("nodes/whiteout", other_device, {"rdev"}),
            "type": ("times/one-ns", to_fifo, {"type"}),
            "hole filled": ("sparse/trailing-hole", fill_hole, {"holes"}),
        }
        for name, (path, action, kinds) in cases.items():
            with self.subTest(name):
                found = self.tamper(path, action)
                if path in found and "/" in path:
                    found.pop(
                        os.path.dirname(path), None
                    )  # replacing an entry changes its directory's mtime
                self.assertEqual({path: kinds}, found)
                self.copy_afresh()

    def test_mtime_by_one_nanosecond(self):
        for path in ("plain", "empty-dir", "links/relative", "nodes/fifo", "."):
            before = os.lstat(os.path.join(self.dst, path)).st_mtime_ns
            found = self.tamper(path, lambda p: trees.set_mtime(p, before + 1), restore_mtime=False)
            self.assertEqual({"mtime"}, found.pop(path), path)
            self.assertEqual({}, found)
            trees.set_mtime(os.path.join(self.dst, path), before)

    def test_broken_and_wrong_hard_links(self):
        two = os.path.join(self.dst, "hard/b/two")
        parent_mtime = os.lstat(os.path.dirname(two)).st_mtime_ns
        subprocess.run(["cp", "-a", two, two + "~"], check=True)
        os.rename(two + "~", two)
        trees.set_mtime(os.path.dirname(two), parent_mtime)
        found = {p.decode(): set(kinds) for p, kinds in compare.compare(self.src, self.dst)}
        self.assertEqual({"hard/b/two": {"hardlink"}}, found)

    def test_extra_and_missing(self):
        trees.write(os.path.join(self.dst, "extra"))
        os.unlink(os.path.join(self.dst, "three"))
        found = {p.decode(): set(kinds) for p, kinds in compare.compare(self.src, self.dst)}
        self.assertEqual({"extra"}, found["extra"])
        self.assertEqual({"missing"}, found["three"])

    def test_temporaries_are_found(self):
        name = ".volferry-" + "0a" * 16 + ".tmp"
        trees.write(os.path.join(self.dst, "deep", name))
        self.assertEqual([b"deep/" + name.encode()], compare.temporaries(self.dst))


class Digests(ScratchCase):
    def test_holes_and_written_zeros_have_equal_content(self):
        trees.sparse_file(self.path("sparse"), 1 << 20, [(300_000, 5000)], seed=1)
        with open(self.path("sparse"), "rb") as stream:
            trees.write(self.path("dense"), stream.read())
        self.assertEqual(
            compare.file_digest(self.path("sparse")), compare.file_digest(self.path("dense"))
        )

    def test_length_counts(self):
        trees.sparse_file(self.path("a"), 4096, [], seed=1)
        trees.sparse_file(self.path("b"), 4097, [], seed=1)
        self.assertNotEqual(
            compare.file_digest(self.path("a")), compare.file_digest(self.path("b"))
        )

    def test_position_counts(self):
        trees.sparse_file(self.path("a"), 1 << 20, [(0, 4096)], seed=1)
        trees.sparse_file(self.path("b"), 1 << 20, [(65536, 4096)], seed=1)
        self.assertNotEqual(
            compare.file_digest(self.path("a")), compare.file_digest(self.path("b"))
        )


class Builders(ScratchCase):
    def test_random_content_depends_on_the_seed_only(self):
        self.assertEqual(trees.random_bytes(3_000_001, 7), trees.random_bytes(3_000_001, 7))
        self.assertNotEqual(trees.random_bytes(100, 7), trees.random_bytes(100, 8))
        trees.write_random(self.path("f"), 3_000_001, 7)
        with open(self.path("f"), "rb") as stream:
            self.assertEqual(trees.random_bytes(3_000_001, 7), stream.read())

    def test_escaping(self):
        for name, text in (
            (b"plain \xe2\x82\xac", "plain €"),
            (b"a\\b", "a\\\\b"),
            (b"new\nline\x7f", "new\\x0aline\\x7f"),
            (b"\xff\xe9x", "\\xff\\xe9x"),
            (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        ):
            self.assertEqual(text, trees.escaped(name))


if __name__ == "__main__":
    unittest.main()
