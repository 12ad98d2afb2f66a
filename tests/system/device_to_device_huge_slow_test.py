# SPDX-License-Identifier: Apache-2.0
"""A 64 GiB loop device on a sparse file: hardly anything on the wire, hardly anything allocated."""

import os

from support import blockdev, trees
from support.case import LOCAL, TLS_PUSH, over

SIZE = 64 << 30
MIB = trees.MIB


@over(LOCAL, TLS_PUSH)
class Huge:
    def test_sparse_device(self):
        source = blockdev.loop_of_size(self, self.path("a"), SIZE)
        destination = blockdev.loop_of_size(self, self.path("b"), SIZE)
        extents = [(0, MIB), (SIZE // 2, MIB), (SIZE - 4096, 4096)]
        for offset, length in extents:
            trees.overwrite(source, offset, trees.random_bytes(length, offset % 1000))
        os.sync()
        result = self.sync(source=source, destination=destination, timeout=300)
        self.assertLessEqual(result.summary["literal_bytes"], 3 * MIB)
        if self.remote:
            self.assertLess(result.wire, 16 * MIB)
        os.sync()
        self.assertLess(os.stat(self.path("b")).st_blocks * 512, 16 * MIB)
        for offset, length in extents:
            for device in (source, destination):
                blockdev.drop_buffers(device)
            with open(source, "rb") as a, open(destination, "rb") as b:
                a.seek(offset)
                b.seek(offset)
                self.assertEqual(a.read(length), b.read(length))
        again = self.sync(source=source, destination=destination, timeout=300)
        self.assertEqual(0, again.summary["literal_bytes"])
