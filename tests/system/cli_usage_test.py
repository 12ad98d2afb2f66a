# SPDX-License-Identifier: Apache-2.0
"""Wrong commands: one clear line on stderr that says what, where and what to do; nothing is
touched.
"""

import os

from support import blockdev, compare, trees
from support.case import ScratchCase


class Usage(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src, files=5)

    def refuse(self, *args, code: int | tuple = 2, mentions: tuple = ()):
        result = self.volferry(*args, expect=code, timeout=30)
        self.assert_error(result, code, *mentions)
        return result

    def test_unknown_option(self):
        self.refuse("sync", "--no-such-option", self.src, self.dst, mentions=("--no-such-option",))

    def test_unknown_command(self):
        self.refuse("frobnicate", mentions=("frobnicate",))

    def test_no_command(self):
        self.refuse()

    def test_missing_and_surplus_arguments(self):
        self.refuse("sync")
        self.refuse("sync", self.src)
        self.refuse("sync", self.src, self.dst, self.path("third"))

    def test_option_without_its_value(self):
        self.refuse("sync", self.src, self.dst, "--bwlimit", mentions=("bwlimit",))

    def test_the_last_of_contradicting_options_counts(self):
        for first, last in (("--durable", "--no-durable"), ("--no-durable", "--durable")):
            self.volferry("sync", first, last, self.src, self.dst)

    def test_contradicting_options(self):
        self.refuse("sync", "-q", "-v", self.src, self.dst)

    def test_missing_source(self):
        self.refuse(
            "sync", self.path("nowhere"), self.dst, code=(2, 22), mentions=(self.path("nowhere"),)
        )
        self.assertFalse(os.path.exists(self.dst))

    def test_missing_parent_of_the_destination(self):
        self.refuse(
            "sync", self.src, self.path("no/such/parent"), code=(2, 21), mentions=("no/such",)
        )
        self.assertFalse(os.path.exists(self.path("no")))

    def test_empty_path(self):
        self.refuse("sync", "", self.dst)
        self.refuse("sync", self.src, "")

    def test_destination_is_the_source(self):
        before = compare.frozen(compare.snapshot(self.src))
        link = self.path("link")
        os.symlink(self.src, link)
        for name in (
            self.src,
            self.src + "/",
            self.src + "/.",
            os.path.join(self.src, "d0/.."),
            link,
        ):
            with self.subTest(name):
                self.refuse("sync", "--delete", self.src, name, mentions=("same",))
                self.refuse("sync", "--delete", name, self.src, mentions=("same",))
        self.assertEqual(before, compare.frozen(compare.snapshot(self.src)))

    def test_destination_is_the_source_through_a_bind_mount(self):
        bound = self.path("bound")
        blockdev.mount(self, bound, "--bind", self.src)
        self.refuse("sync", self.src, bound)

    def test_one_inside_the_other(self):
        link = self.path("link")
        os.symlink(os.path.join(self.src, "d0"), link)
        before = compare.frozen(compare.snapshot(self.src))
        for inside in (os.path.join(self.src, "d0"), os.path.join(self.src, "d0/s0"), link):
            with self.subTest(inside):
                self.refuse("sync", "--delete", self.src, inside, mentions=("inside",))
                self.refuse("sync", "--delete", inside, self.src, mentions=("inside",))
        self.refuse("sync", self.src, os.path.join(self.src, "new"), mentions=("inside",))
        self.assertEqual(before, compare.frozen(compare.snapshot(self.src)))

    def test_similar_names_are_not_nested(self):
        self.volferry("sync", self.src, self.src + "-copy")
        self.assert_same(b=self.src + "-copy")

    def test_file_onto_itself(self):
        trees.write(self.path("a"), b"content")
        os.link(self.path("a"), self.path("hard"))
        os.symlink("a", self.path("soft"))
        for name in ("a", "hard", "soft"):
            with self.subTest(name):
                self.refuse("sync", self.path("a"), self.path(name), mentions=("same",))
        with open(self.path("a"), "rb") as stream:
            self.assertEqual(b"content", stream.read())

    def test_wrong_pairings(self):
        trees.write(self.path("file"), b"x")
        os.mkfifo(self.path("fifo"))
        os.makedirs(self.dst)
        for source, destination, found in (
            (self.src, self.path("file"), ("directory", "file")),
            (self.path("file"), self.dst, ("file", "directory")),
            (self.path("fifo"), self.dst, ("fifo",)),
            (self.path("fifo"), self.path("new"), ("fifo",)),
            (self.src, self.path("fifo"), ("directory", "fifo")),
        ):
            with self.subTest(f"{source} {destination}"):
                self.refuse("sync", source, destination, mentions=found)

    def test_directory_and_device(self):
        device = blockdev.loop_of_size(self, self.path("image"), 1 << 20)
        self.refuse("sync", self.src, device, mentions=("directory", "device"))
        os.makedirs(self.dst)
        self.refuse("sync", device, self.dst, mentions=("directory", "device"))

    def test_two_remote_ends(self):
        self.refuse("sync", "a:/x", "b:/y", mentions=("remote",))
        self.refuse("sync", "tls://127.0.0.1:1", "tls://127.0.0.1:2")

    def test_unknown_scheme(self):
        self.refuse("sync", self.src, "ftp://host/path", mentions=("ftp",))

    def test_a_local_name_with_a_colon(self):
        """As with rsync and scp, a slash before the colon makes it local."""
        odd = self.path("host:path")
        self.volferry("sync", self.src, odd)
        self.assert_same(b=odd)
        self.volferry("sync", odd, self.path("back"))
        self.volferry("sync", "./host:path", "./back2", cwd=self.dir)
        self.assert_same(b=self.path("back2"))

    def test_a_wrong_run_makes_no_destination(self):
        self.refuse("sync", "--io", "nonsense", self.src, self.dst)
        self.assertFalse(os.path.exists(self.dst))

    def test_source_with_odd_bytes_in_the_error(self):
        name = os.fsencode(self.dir) + b"/odd-\xff\n"
        result = self.volferry("sync", name, self.dst, expect=(2, 22))
        self.assert_error(result, (2, 22), "odd-\\xff\\x0a")

    def test_json_summary_of_a_refused_run(self):
        result = self.volferry("sync", "--json", self.path("nowhere"), self.dst, expect=(2, 22))
        self.assertEqual("failed", result.summary["result"])
        self.assertEqual(result.code, result.summary["exit_code"])
