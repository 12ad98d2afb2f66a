# SPDX-License-Identifier: Apache-2.0
"""Holes stay holes and never cross the wire."""

import os
import subprocess

from support import trees
from support.case import ALL_TRANSPORTS, MAIN_TRANSPORTS, over

MIB = trees.MIB


@over(*ALL_TRANSPORTS)
class Holes:
    def test_kept_in_every_place(self):
        layouts = {
            "none": (3 * MIB, [(0, 3 * MIB)]),
            "all": (100 * MIB, []),
            "trailing": (1 << 30, [(0, 4096)]),
            "leading": (1 << 30, [((1 << 30) - 4096, 4096)]),
            "odd-end": (50 * MIB + 123, [(10 * MIB, 5000)]),
            "many": (64 * MIB, [(at * MIB, 4096) for at in range(0, 64, 2)]),
            "2gib": (2**31, [(2**31 - 4096, 4096)]),
            "4gib-1": (2**32 - 1, [(2**32 - 4097, 4096)]),
            "4gib+1": (2**32 + 1, [(2**32 - 10, 11)]),
            "small-holes": (4 * MIB, [(at * 8192, 4096) for at in range(512)]),
        }
        for name, (size, data) in layouts.items():
            trees.sparse_file(os.path.join(self.src, name), size, data, seed=len(name))
        result = self.sync_and_check()
        total = sum(length for _, data in layouts.values() for _, length in data)
        self.assertLessEqual(result.summary["literal_bytes"], total + 512 * 4096)
        self.assertEqual(0, os.stat(os.path.join(self.dst, "all")).st_blocks)
        if self.remote:
            self.assertLess(result.wire, total + 512 * 4096 + 2 * MIB)

    def test_trailing_hole_takes_no_space(self):
        trees.sparse_file(os.path.join(self.src, "f"), 1 << 30, [], seed=1)
        self.sync()
        self.assertEqual(0, os.stat(os.path.join(self.dst, "f")).st_blocks)
        self.assert_same()


@over(*MAIN_TRANSPORTS)
class Changes:
    def test_data_becomes_a_hole(self):
        path = os.path.join(self.src, "f")
        trees.write_random(path, 16 * MIB, seed=1)
        self.sync()
        trees.sparse_file(path, 16 * MIB, [(8 * MIB, 4096)], seed=2)
        for options in ((), ("--inplace",)):
            with self.subTest(options):
                self.sync(*options)
                self.assert_same()
                trees.sparse_file(path, 16 * MIB, [(4 * MIB, 4096), (12 * MIB, MIB)], seed=3)
        self.sync()
        self.assert_same()

    def test_tebibyte_of_holes(self):
        path = os.path.join(self.src, "f")
        trees.sparse_file(
            path, 1 << 40, [(0, 4096), (1 << 39, MIB), ((1 << 40) - 4096, 4096)], seed=1
        )
        result = self.sync(timeout=60)
        self.assert_same()
        self.assertEqual(1 << 40, result.summary["bytes_total"])
        self.assertLessEqual(result.summary["literal_bytes"], 2 * MIB)
        trees.overwrite(path, 1 << 38, b"changed")
        result = self.sync(timeout=60)
        self.assert_same()
        # Locally the data is copied beside the old file, which costs no wire; the holes cost nothing either way.
        self.assertLessEqual(result.summary["literal_bytes"], 128 * 1024 if self.remote else 2 * MIB)

    def test_written_zeros_do_not_cross_the_wire(self):
        trees.write(os.path.join(self.src, "zeros"), bytes(32 * MIB))
        result = self.sync()
        self.assert_same()
        if self.remote:
            self.assertEqual(0, result.summary["literal_bytes"])
            self.assertLess(result.wire, 100_000)


def fallocate(path, *options: str) -> None:
    subprocess.run(["fallocate", *options, path], check=True, capture_output=True)


def blocks(path) -> int:
    return os.stat(path).st_blocks


def file_system(path) -> str:
    done = subprocess.run(
        ["stat", "-f", "-c", "%T", path], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@over(*MAIN_TRANSPORTS)
class Allocation:
    """What reads as zeros at both ends is a hole or allocated as at the source, once the file is
    transferred at all."""

    WAYS = ((), ("--inplace",), ("-c",), ("--inplace", "-c"))

    def setUp(self):
        super().setUp()
        self.need_tool("fallocate")
        self.file = os.path.join(self.src, "f")
        self.copy = os.path.join(self.dst, "f")

    def start(self, *pieces: bytes):
        """The file made of these, at both ends; every byte of it allocated."""
        trees.write(self.file, b"".join(pieces))
        self.sync()
        self.assert_same()
        self.assert_alike()

    def assert_alike(self):
        # A block of the file system's own tells of many extents. XFS sets space aside around what
        # is rewritten in a reflinked file, 128 KiB at a time.
        spare = 1024 if file_system(self.dir) == "xfs" and blocks(self.file) > 2048 else 8
        self.assertAlmostEqual(blocks(self.file), blocks(self.copy), delta=spare)

    def check(self, *options):
        self.sync(*options)
        self.assert_alike()
        self.assert_same()
        # A second look at everything finds nothing to do.
        self.assert_noop(self.sync("-i", "-c", *options))
        self.assert_same()

    def both_ways(self, prepare, begin: int, length: int):
        for options in self.WAYS:
            with self.subTest(options):
                prepare()
                fallocate(self.file, "-p", "-o", str(begin), "-l", str(length))
                self.check(*options)
                self.assertLess(blocks(self.copy) * 512, os.stat(self.copy).st_size)
                trees.overwrite(self.file, begin, bytes(length))
                self.check(*options)
                self.assertGreaterEqual(blocks(self.copy) * 512, os.stat(self.copy).st_size)

    def test_whole_ranges(self):
        data = trees.random_bytes(2 * MIB, 1)
        self.both_ways(lambda: self.start(data, bytes(4 * MIB), data), 2 * MIB, 4 * MIB)

    def test_parts_of_ranges(self):
        data = trees.random_bytes(MIB + 300 * 1024, 1)
        self.both_ways(
            lambda: self.start(data, bytes(3 * MIB), data), 2 * MIB - 64 * 1024, 2 * MIB + 4096
        )

    def test_all_zeros(self):
        self.both_ways(lambda: self.start(bytes(4 * MIB)), 0, 4 * MIB)

    def test_up_to_an_odd_end(self):
        data = trees.random_bytes(MIB, 1)
        size = 3 * MIB + 777
        self.both_ways(lambda: self.start(data, bytes(size - MIB)), MIB + 8192, size - MIB - 8192)

    def test_small_file(self):
        data = trees.random_bytes(8192, 1)
        self.both_ways(lambda: self.start(data, bytes(12288)), 8192, 12288)

    def test_medium_file(self):
        data = trees.random_bytes(40 * 1024, 1)
        self.both_ways(lambda: self.start(data, bytes(60 * 1024)), 40 * 1024, 60 * 1024)

    def test_beside_changed_content(self):
        data = trees.random_bytes(2 * MIB, 1)
        for options in self.WAYS:
            with self.subTest(options):
                self.start(data, bytes(4 * MIB), data)
                # In the same range as a hole, in another one, and what had been a hole.
                fallocate(self.file, "-p", "-o", str(3 * MIB), "-l", str(MIB // 2))
                trees.overwrite(self.file, 3 * MIB + 700 * 1024, b"changed")
                trees.overwrite(self.file, 6 * MIB, b"changed")
                self.check(*options)
                trees.overwrite(self.file, 3 * MIB, bytes(MIB // 4))
                trees.overwrite(self.file, 3 * MIB + 900 * 1024, b"changed again")
                self.check(*options)

    def test_preallocated_at_the_destination(self):
        if file_system(self.dir) == "tmpfs":
            self.skipTest("tmpfs does not tell what is allocated and was never written")
        trees.sparse_file(self.file, 6 * MIB, [(0, MIB), (5 * MIB, MIB)], seed=1)
        for options in self.WAYS:
            with self.subTest(options):
                self.sync(*options)
                fallocate(self.copy, "-o", str(MIB), "-l", str(2 * MIB))
                trees.set_mtime(self.file, os.stat(self.file).st_mtime_ns + 1)
                self.check(*options)

    def test_equal_times_are_believed(self):
        self.start(bytes(4 * MIB))
        fallocate(self.file, "-p", "-o", "0", "-l", str(2 * MIB))
        trees.copy_mtime(self.copy, self.file)
        before = blocks(self.copy)
        self.assert_noop(self.sync("-i"))
        self.assertEqual(before, blocks(self.copy))
        self.check("-c")
