# SPDX-License-Identifier: Apache-2.0
"""Holes stay holes and never cross the wire."""

import os

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
