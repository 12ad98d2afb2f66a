# SPDX-License-Identifier: Apache-2.0
"""Hard-link groups: made, split, regrouped, repaired."""

import os

from support import trees
from support.case import ALL_TRANSPORTS, MAIN_TRANSPORTS, over


def write(root: str, name: str, content: bytes = b"content\n") -> None:
    trees.write(os.path.join(root, name), content)


def link(root: str, first: str, *others: str) -> None:
    for other in others:
        path = os.path.join(root, other)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        os.link(os.path.join(root, first), path)


@over(*MAIN_TRANSPORTS)
class Groups:
    def test_across_directories_in_both_orders(self):
        write(self.src, "m/middle", b"1" * 100_000)
        link(self.src, "m/middle", "a/early", "z/late", "m/other")
        write(self.src, "single", b"1" * 100_000)
        result = self.sync_and_check()
        self.assertEqual(200_000, result.summary["literal_bytes"])

    def test_smallest_tree_with_one_link(self):
        write(self.src, "a")
        link(self.src, "a", "b")
        result = self.sync("-i")
        self.assert_same()
        self.assertIn("hf+++++++++", [code for code, _ in result.items])

    def test_linked_becomes_unlinked(self):
        write(self.src, "a")
        link(self.src, "a", "b", "d/c")
        self.sync()
        os.unlink(os.path.join(self.src, "b"))
        write(self.src, "b", b"now alone\n")
        self.sync_and_check()

    def test_unlinked_with_equal_content_and_time(self):
        write(self.src, "a")
        link(self.src, "a", "b")
        self.sync()
        os.unlink(os.path.join(self.src, "b"))
        write(self.src, "b")
        trees.copy_mtime(os.path.join(self.src, "a"), os.path.join(self.src, "b"))
        self.sync_and_check()

    def test_unlinked_becomes_linked(self):
        for name in "abc":
            write(self.src, name)
            trees.set_mtime(os.path.join(self.src, name), 10**18)
        self.sync()
        link(self.src, "a", "b", "c")
        self.sync_and_check()

    def test_regrouped(self):
        write(self.src, "a1", b"group a")
        link(self.src, "a1", "a2", "a3")
        write(self.src, "b1", b"group b")
        link(self.src, "b1", "b2", "b3")
        self.sync()
        link(self.src, "a1", "b2")
        link(self.src, "b1", "a2")
        self.sync_and_check()

    def test_destination_wrongly_linked(self):
        write(self.src, "a", b"content of a")
        write(self.src, "b", b"content of b")
        write(self.dst, "a", b"content of a")
        link(self.dst, "a", "b")
        for options in ((), ("--inplace",)):
            with self.subTest(options):
                self.sync(*options)
                self.assert_same()
                link(self.dst, "a", "b")
        self.sync()
        self.assert_same()

    def test_change_of_a_linked_file_in_place(self):
        write(self.src, "a", trees.random_bytes(50_000, 1))
        link(self.src, "a", "b")
        self.sync()
        trees.overwrite(os.path.join(self.src, "b"), 100, b"changed")
        self.sync("--inplace")
        self.assert_same()

    def test_content_change_keeps_the_group(self):
        write(self.src, "a", trees.random_bytes(50_000, 1))
        link(self.src, "a", "b", "d/c")
        self.sync()
        trees.overwrite(os.path.join(self.src, "a"), 100, b"changed")
        self.sync_and_check()

    def test_new_member_of_an_old_group(self):
        write(self.src, "m")
        link(self.src, "m", "n")
        self.sync()
        link(self.src, "m", "a-new", "z-new")
        result = self.sync()
        self.assert_same()
        # The first name of a group, here a new one, gets the content: once, not once a name.
        size = os.path.getsize(os.path.join(self.src, "m"))
        self.assertLessEqual(result.summary["literal_bytes"], size)

    def test_deleted_member(self):
        write(self.src, "a")
        link(self.src, "a", "b", "c")
        self.sync()
        os.unlink(os.path.join(self.src, "a"))
        self.sync("--delete")
        self.assert_same()
        self.assert_noop(self.sync("-i", "--delete"))

    def test_link_to_a_file_outside_the_volume_counts_alone(self):
        write(self.dir, "outside")
        os.makedirs(self.src)
        os.link(self.path("outside"), os.path.join(self.src, "inside"))
        self.sync_and_check()

    def test_excluded_first_member(self):
        write(self.src, "a")
        link(self.src, "a", "b", "c")
        self.sync("--exclude", "/a")
        self.assertFalse(os.path.exists(os.path.join(self.dst, "a")))
        self.assertTrue(os.path.samefile(os.path.join(self.dst, "b"), os.path.join(self.dst, "c")))

    def test_replacing_a_destination_linked_elsewhere(self):
        write(self.src, "a", b"new content")
        write(self.dst, "a", b"old")
        os.link(os.path.join(self.dst, "a"), self.path("backup"))
        self.sync()
        self.assert_same()
        with open(self.path("backup"), "rb") as stream:
            self.assertEqual(b"old", stream.read())


@over(*ALL_TRANSPORTS)
class ManyGroups:
    def test_hundreds_of_groups(self):
        for number in range(300):
            write(self.src, f"a/{number}", b"%d" % number)
            link(self.src, f"a/{number}", f"b/{number % 7}/{number}", f"c/{number}")
        self.sync_and_check()
