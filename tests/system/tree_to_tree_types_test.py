# SPDX-License-Identifier: Apache-2.0
"""An entry that becomes another type, in every combination, and symlinks that must never be
followed.
"""

import itertools
import os
import stat

from support import compare, trees
from support.case import MAIN_TRANSPORTS, is_directory, over

KINDS = ("file", "directory", "full-directory", "symlink", "fifo", "device", "hardlink")


def make(kind: str, path: str) -> None:
    if kind == "file":
        trees.write(path, b"content of a file")
    elif kind == "directory":
        os.makedirs(path)
    elif kind == "full-directory":
        trees.write(os.path.join(path, "sub/file"), b"below")
        os.symlink("/etc", os.path.join(path, "link"))
    elif kind == "symlink":
        os.symlink("nowhere", path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    elif kind == "hardlink":
        other = path + "-first"
        trees.write(other, b"linked")
        os.link(other, path)


@over(*MAIN_TRANSPORTS)
class TypeChanges:
    def test_every_pair(self):
        self.need_root("device nodes")
        os.makedirs(self.src)
        os.makedirs(self.dst)
        for old, new in itertools.permutations(KINDS, 2):
            name = f"{old}-to-{new}"
            make(old, os.path.join(self.dst, name))
            make(new, os.path.join(self.src, name))
        self.sync("--delete")
        self.assert_same()
        self.assert_noop(self.sync("-i", "--delete"))

    def test_without_delete_a_full_directory_in_the_way_is_kept_or_replaced_but_never_half(self):
        trees.write(os.path.join(self.src, "x"), b"now a file")
        trees.write(os.path.join(self.dst, "x/keep"), b"precious")
        result = self.sync(expect=(0, 3))
        if result.code == 3:
            self.assert_named(result, "x")
            self.assertTrue(os.path.exists(os.path.join(self.dst, "x/keep")))
        else:
            self.assert_same()


@over(*MAIN_TRANSPORTS)
class LinksAreNotFollowed:
    def setUp(self):
        super().setUp()
        self.outside = self.path("outside")
        trees.write(os.path.join(self.outside, "file"), b"outside", mtime_ns=77)
        trees.write(os.path.join(self.outside, "sub/other"), b"outside too")
        self.before = compare.frozen(compare.snapshot(self.outside))

    def assert_outside_untouched(self):
        self.assertEqual(self.before, compare.frozen(compare.snapshot(self.outside)))

    def test_planted_directory_link_is_replaced(self):
        trees.write(os.path.join(self.src, "d/file"), b"inside")
        trees.write(os.path.join(self.src, "d/sub/other"), b"inside too")
        os.makedirs(self.dst)
        os.symlink(self.outside, os.path.join(self.dst, "d"))
        self.sync("--delete")
        self.assert_same()
        self.assertTrue(is_directory(os.path.join(self.dst, "d")))
        self.assert_outside_untouched()

    def test_planted_file_link_is_replaced(self):
        trees.write(os.path.join(self.src, "file"), b"inside")
        os.makedirs(self.dst)
        for options in ((), ("--inplace",), ("--inplace", "-c")):
            with self.subTest(options):
                if os.path.lexists(os.path.join(self.dst, "file")):
                    os.unlink(os.path.join(self.dst, "file"))
                os.symlink(os.path.join(self.outside, "file"), os.path.join(self.dst, "file"))
                self.sync(*options)
                self.assert_same()
                self.assert_outside_untouched()

    def test_planted_link_to_identical_file_is_still_replaced(self):
        trees.write(os.path.join(self.src, "file"), b"outside", mtime_ns=77)
        os.makedirs(self.dst)
        os.symlink(os.path.join(self.outside, "file"), os.path.join(self.dst, "file"))
        self.sync()
        self.assert_same()
        self.assert_outside_untouched()

    def test_directory_becomes_link_and_nothing_behind_is_deleted(self):
        trees.write(os.path.join(self.src, "b/same"), b"same")
        trees.write(os.path.join(self.src, "a/same"), b"same")
        trees.write(os.path.join(self.src, "a/more"), b"more")
        self.sync("--delete")
        for name in ("same", "more"):
            os.unlink(os.path.join(self.src, "a", name))
        os.rmdir(os.path.join(self.src, "a"))
        os.symlink("b", os.path.join(self.src, "a"))
        self.sync("--delete")
        self.assert_same()
        self.assertTrue(os.path.exists(os.path.join(self.dst, "b/same")))

    def test_delete_removes_a_link_and_not_what_it_names(self):
        os.makedirs(self.src)
        os.makedirs(self.dst)
        os.symlink(self.outside, os.path.join(self.dst, "gone"))
        self.sync("--delete")
        self.assert_same()
        self.assert_outside_untouched()

    def test_source_links_are_copied_and_not_read(self):
        os.makedirs(self.src)
        os.symlink(self.outside, os.path.join(self.src, "d"))
        os.symlink(os.path.join(self.outside, "file"), os.path.join(self.src, "f"))
        self.sync_and_check()

    def test_destination_root_given_as_a_link(self):
        trees.small_tree(self.src)
        real = self.path("real")
        os.makedirs(real)
        os.symlink(real, self.dst)
        self.sync()
        self.assertTrue(os.path.islink(self.dst))
        self.assert_same(b=real)
