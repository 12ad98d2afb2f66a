# SPDX-License-Identifier: Apache-2.0
"""What makes a file count as changed: size, mtime to the nanosecond, and with -c its content."""

import os

from support import trees
from support.case import MAIN_TRANSPORTS, over

T = 1_700_000_000 * 10**9


@over(*MAIN_TRANSPORTS)
class QuickCheck:
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.src, "file")
        self.copy = os.path.join(self.dst, "file")
        trees.write(self.file, b"one" * 1000, mtime_ns=T)
        self.sync()
        self.assert_same()

    def content(self) -> bytes:
        with open(self.copy, "rb") as stream:
            return stream.read()

    def test_same_size_and_time_is_trusted_without_checksum(self):
        trees.write(self.file, b"two" * 1000, mtime_ns=T)
        self.assert_noop(self.sync("-i"))
        self.assertEqual(b"one" * 1000, self.content())

    def test_same_size_and_time_is_found_with_checksum(self):
        trees.write(self.file, b"two" * 1000, mtime_ns=T)
        result = self.sync("-c", "-i")
        self.assertEqual(1, result.summary["files_transferred"])
        self.assertEqual("c", result.items[0][0][2])
        self.assert_same()
        self.assert_noop(self.sync("--checksum", "-i"))

    def test_checksum_finds_a_changed_destination(self):
        trees.write(self.copy, b"bad" * 1000, mtime_ns=T)
        self.sync("-c")
        self.assert_same()

    def test_one_nanosecond_makes_a_difference(self):
        trees.write(self.file, b"two" * 1000, mtime_ns=T + 1)
        result = self.sync()
        self.assertEqual(1, result.summary["files_transferred"])
        self.assert_same()

    def test_older_source_wins_too(self):
        trees.write(self.file, b"old" * 1000, mtime_ns=T - 10**15)
        self.sync()
        self.assert_same()

    def test_other_size_with_the_same_time(self):
        trees.write(self.file, b"four" * 1000, mtime_ns=T)
        self.sync()
        self.assert_same()

    def test_truncated_source(self):
        trees.write(self.file, b"", mtime_ns=T)
        self.sync_and_check()

    def test_touched_only_sends_no_content(self):
        trees.set_mtime(self.file, T + 5 * 10**9)
        result = self.sync()
        self.assertEqual(0, result.summary["literal_bytes"])
        self.assert_same()


@over(*MAIN_TRANSPORTS)
class Sizes:
    def test_every_boundary(self):
        for size in trees.boundary_sizes():
            trees.write_random(os.path.join(self.src, f"size-{size}"), size, seed=size)
        self.sync_and_check()
        for size in trees.boundary_sizes():
            if size:
                trees.overwrite(os.path.join(self.src, f"size-{size}"), size - 1, b"\x01")
        self.sync_and_check()

    def test_grown_and_shrunk_by_one(self):
        sizes = [size for size in trees.boundary_sizes() if 0 < size < 8 << 20]
        for size in sizes:
            trees.write_random(os.path.join(self.src, f"size-{size}"), size, seed=size)
        self.sync()
        for options in ((), ("--inplace",)):
            for number, size in enumerate(sizes):
                path = os.path.join(self.src, f"size-{size}")
                os.truncate(path, max(0, os.path.getsize(path) + (1 if number % 2 else -1)))
            with self.subTest(options):
                self.sync(*options)
                self.assert_same()
        for number, size in enumerate(sizes):
            os.truncate(os.path.join(self.src, f"size-{size}"), size // 2)
        self.sync_and_check()

    def test_empty_volume(self):
        os.mkdir(self.src, 0o711)
        trees.set_mtime(self.src, 12345)
        result = self.sync_and_check()
        self.assertEqual(0, result.summary["bytes_total"])

    def test_empty_destination_directory_exists(self):
        trees.small_tree(self.src)
        os.mkdir(self.dst)
        result = self.sync_and_check()
        self.assertEqual(40, result.summary["files_transferred"])
        self.assertEqual(40, result.summary["files_total"])

    def test_trailing_slash_makes_no_difference(self):
        trees.small_tree(self.src)
        os.mkdir(self.dst)
        self.sync(source=self.src + "/", destination=self.dst + "/")
        self.assert_same()

    def test_summary_counts(self):
        trees.write(os.path.join(self.src, "a"), trees.random_bytes(10_000, 1))
        trees.write(os.path.join(self.src, "d/b"), trees.random_bytes(20_000, 2))
        summary = self.sync().summary
        self.assertEqual(2, summary["files_total"])
        self.assertEqual(2, summary["files_transferred"])
        self.assertEqual(30_000, summary["bytes_total"])
        self.assertEqual(30_000, summary["literal_bytes"])
        self.assertIn(summary["dirs_total"], (1, 2))  # the root counted or not
        self.assertGreater(summary["elapsed_s"], 0)
        self.assertIn(summary["io"], ("uring", "threads"))
        if self.remote:
            self.assertGreater(summary["wire_sent"] + summary["wire_received"], 30_000)
        else:
            self.assertEqual(0, summary["wire_sent"])
