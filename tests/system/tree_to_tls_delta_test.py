# SPDX-License-Identifier: Apache-2.0
"""What a change costs on the wire."""

import os
import random

from support import trees
from support.case import TLS_PULL, TLS_PUSH, over

MIB, KIB = trees.MIB, trees.KIB
SIZE = 256 * MIB


@over(TLS_PUSH, TLS_PULL)
class LargeFile:
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.src, "f")
        trees.write_random(self.file, SIZE, seed=1)
        self.sync("--no-durable")

    def cost(self, *options):
        result = self.sync("--no-durable", *options)
        self.assert_same()
        self.assertEqual(SIZE, result.summary["bytes_total"] // SIZE * SIZE)
        return result

    def test_small_changes(self):
        trees.overwrite(self.file, SIZE // 3 // 4096 * 4096, trees.random_bytes(4 * KIB, 2))
        result = self.cost()
        self.assertLessEqual(result.summary["literal_bytes"], 4 * KIB)
        self.assertLessEqual(result.wire, 4 * KIB + 20 * KIB, f"\n{result}")

        trees.overwrite(self.file, SIZE // 2 + 1234, trees.random_bytes(100, 3))
        result = self.cost("--inplace")
        self.assertLessEqual(result.summary["literal_bytes"], 4 * KIB)
        self.assertLessEqual(result.wire, 4 * KIB + 20 * KIB)

        os.utime(self.file)
        result = self.cost()
        self.assertEqual(0, result.summary["literal_bytes"])
        self.assertLessEqual(result.wire, 20 * KIB)

        source = random.Random(4)
        blocks = SIZE // 4096 // 100
        for block in source.sample(range(SIZE // 4096), blocks):
            trees.overwrite(self.file, block * 4096, source.randbytes(4096))
        result = self.cost()
        changed = blocks * 4096
        self.assertLessEqual(result.summary["literal_bytes"], changed)
        self.assertLessEqual(result.wire, changed * 1.2 + 4 * MIB)

    def test_insertion_in_front_and_appending(self):
        with open(self.file, "rb") as stream:
            content = stream.read()
        with open(self.file, "wb") as stream:
            stream.write(trees.random_bytes(1000, 5))
            stream.write(content)
        result = self.cost()
        self.assertLessEqual(result.summary["literal_bytes"], MIB)
        self.assertLessEqual(result.wire, 6 * MIB)

        with open(self.file, "ab") as stream:
            stream.write(trees.random_bytes(100 * KIB, 6))
        result = self.cost()
        self.assertLessEqual(result.summary["literal_bytes"], 100 * KIB + 8 * KIB)


@over(TLS_PUSH, TLS_PULL)
class Shapes:
    """Smaller files of awkward content: equal results and bounded cost."""

    def change(self, old: bytes, new: bytes, most_literal: int, *options):
        path = os.path.join(self.src, "f")
        for root, content in ((self.src, new), (self.dst, old)):
            trees.write(os.path.join(root, "f"), content)
        trees.set_mtime(path, 10**18)
        result = self.sync("--no-durable", *options)
        self.assert_same()
        self.assertLessEqual(result.summary["literal_bytes"], most_literal, f"\n{result}")

    def test_insertion_in_the_middle(self):
        content = trees.random_bytes(8 * MIB, 1)
        self.change(
            content, content[: 3 * MIB + 5] + b"inserted" * 10 + content[3 * MIB + 5 :], 128 * KIB
        )

    def test_removal_in_the_middle(self):
        content = trees.random_bytes(8 * MIB, 1)
        self.change(content, content[: 3 * MIB + 5] + content[3 * MIB + 777 :], 128 * KIB)

    def test_moved_block(self):
        content = trees.random_bytes(8 * MIB, 1)
        self.change(content, content[4 * MIB :] + content[: 4 * MIB], 256 * KIB)

    def test_all_bytes_equal(self):
        self.change(b"a" * (16 * MIB), b"a" * (16 * MIB + 333), 64 * KIB)

    def test_period_of_700_bytes(self):
        unit = trees.random_bytes(700, 1)
        self.change(unit * 20_000, b"x" + unit * 20_000, 256 * KIB)

    def test_blocks_with_equal_weak_sums(self):
        """Swapping bytes in pairs keeps an Adler-like sum; rsync took hours for such files
        (rsync#217).
        """
        source = random.Random(1)
        block = bytearray(trees.random_bytes(4096, 1))
        blocks = []
        for _ in range(1000):
            variant = bytearray(block)
            at = source.randrange(0, 4000)
            variant[at : at + 4] = bytes((1, 0, 0, 1))
            other = source.randrange(0, 4000)
            variant[other : other + 4] = bytes((0, 1, 1, 0))
            blocks.append(bytes(variant))
        old = b"".join(blocks)
        source.shuffle(blocks)
        self.change(old, b"!" + b"".join(blocks), len(old) + 1)

    def test_shuffled_blocks(self):
        source = random.Random(1)
        blocks = [source.randbytes(64 * KIB) for _ in range(128)]
        old = b"".join(blocks)
        source.shuffle(blocks)
        self.change(old, b"".join(blocks), MIB)

    def test_append_over_a_different_prefix(self):
        self.change(b"123", b"Hello world", 11)

    def test_identical_content_with_sha256(self):
        content = trees.random_bytes(8 * MIB, 1)
        self.change(content, content, 0, "--hash", "sha256")

    def test_small_change_with_sha256(self):
        content = trees.random_bytes(8 * MIB, 1)
        self.change(content, content[:MIB] + b"!" + content[MIB + 1 :], 4 * KIB, "--hash", "sha256")

    def test_unknown_hash(self):
        trees.write(os.path.join(self.src, "f"))
        self.assert_error(self.sync("--hash", "md5", expect=2), 2, "hash")

    def test_sha256_costs_wider_digests(self):
        """The option reaches the protocol: digests of 32 bytes, not 16."""
        path = os.path.join(self.src, "f")
        trees.write_random(path, 64 * MIB, seed=1)
        self.sync("--no-durable")
        wires = {}
        for hash_name in ("xxh3", "sha256"):
            trees.overwrite(path, 10 * MIB, hash_name.encode())
            wires[hash_name] = self.sync("--no-durable", "--hash", hash_name).wire
            self.assert_same()
        self.assertGreater(wires["sha256"], wires["xxh3"])
