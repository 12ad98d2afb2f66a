# SPDX-License-Identifier: Apache-2.0
"""--inplace keeps the inode; without it a changed file is a new one that was renamed into place."""

import os

from support import trees
from support.case import MAIN_TRANSPORTS, over

SIZE = 3_000_001


@over(*MAIN_TRANSPORTS)
class InPlace:
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.src, "file")
        self.copy = os.path.join(self.dst, "file")
        trees.write_random(self.file, SIZE, seed=1)
        self.sync()
        self.inode = os.stat(self.copy).st_ino

    def test_default_replaces_the_file(self):
        reader = os.open(self.copy, os.O_RDONLY)
        self.addCleanup(os.close, reader)
        old = os.pread(reader, 1000, 0)
        trees.overwrite(self.file, 0, b"new content")
        self.sync()
        self.assert_same()
        self.assertNotEqual(self.inode, os.stat(self.copy).st_ino)
        self.assertEqual(
            old, os.pread(reader, 1000, 0), "who has the old file open must keep seeing it"
        )

    def test_inplace_keeps_the_inode(self):
        trees.overwrite(self.file, 1_000_000, b"new content")
        self.sync("--inplace")
        self.assert_same()
        self.assertEqual(self.inode, os.stat(self.copy).st_ino)

    def test_inplace_shrink_and_grow(self):
        for size in (SIZE - 1, 4096, 0, 513, SIZE):
            with self.subTest(size):
                with open(self.file, "wb") as stream:
                    stream.write(trees.random_bytes(size, size))
                self.sync("--inplace")
                self.assert_same()
                self.assertEqual(self.inode, os.stat(self.copy).st_ino)

    def test_insertion_in_front(self):
        content = trees.random_bytes(SIZE, 1)
        for shift in (1, 700, 4096, 70_000):
            with self.subTest(shift):
                with open(self.file, "wb") as stream:
                    stream.write(trees.random_bytes(shift, shift) + content)
                self.sync("--inplace")
                self.assert_same()

    def test_removal_in_front(self):
        content = trees.random_bytes(SIZE, 1)
        for shift in (1, 4096, 70_000):
            with self.subTest(shift):
                with open(self.file, "wb") as stream:
                    stream.write(content[shift:])
                self.sync("--inplace")
                self.assert_same()

    def test_swapped_halves(self):
        content = trees.random_bytes(SIZE, 1)
        with open(self.file, "wb") as stream:
            stream.write(content[SIZE // 2 :] + content[: SIZE // 2])
        self.sync("--inplace")
        self.assert_same()

    def test_last_zero_byte_of_an_odd_size(self):
        trees.write(self.file, b"A" * 512 + b"\0")
        trees.write(self.copy, b"B" * 513)
        self.sync("--inplace")
        self.assert_same()

    def test_zeros_over_old_data_and_a_new_hole(self):
        trees.sparse_file(self.file, SIZE, [(0, 100), (2_000_000, 100)], seed=3)
        self.sync("--inplace")
        self.assert_same()

    def test_hole_becomes_data(self):
        trees.sparse_file(self.file, SIZE, [], seed=3)
        self.sync()
        trees.write_random(self.file, SIZE, seed=4)
        self.sync("--inplace")
        self.assert_same()
