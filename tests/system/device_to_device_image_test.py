# SPDX-License-Identifier: Apache-2.0
"""Image mode with block devices: loop devices of every awkward size, local and over TLS."""

import os
import random

from support import blockdev, compare, trees
from support.case import LOCAL, MAIN_TRANSPORTS, ScratchCase, over

MIB = trees.MIB


class Devices:
    def device(self, name: str, size: int, *options: str) -> str:
        return blockdev.loop_of_size(self, self.path(name), size, *options)

    def fill(self, path: str, extents, seed: int = 1) -> None:
        with open(path, "r+b", buffering=0) as stream:
            for index, (offset, length) in enumerate(extents):
                stream.seek(offset)
                stream.write(trees.random_bytes(length, seed + index))
            os.fsync(stream.fileno())

    def bytes_of(self, path: str, length: int, offset: int = 0) -> bytes:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)

    def check(self, source: str, destination: str) -> None:
        """Equal over the source's length."""
        blockdev.drop_buffers(destination)
        size = blockdev.device_size(source)
        for offset in range(0, size, MIB):
            length = min(MIB, size - offset)
            if self.bytes_of(source, length, offset) != self.bytes_of(destination, length, offset):
                self.fail(f"differs within {offset}+{length}")


@over(*MAIN_TRANSPORTS)
class DeviceImages(Devices):
    def test_device_to_device(self):
        size = 64 * MIB
        source, destination = self.device("a", size), self.device("b", size)
        self.fill(source, [(0, 5 * MIB), (30 * MIB, 123_456), (size - 4096, 4096)])
        self.fill(
            destination, [(0, 9 * MIB), (50 * MIB, 3 * MIB)], seed=50
        )  # must be zeroed where the source is
        first = self.sync(source=source, destination=destination)
        self.check(source, destination)
        self.assertLessEqual(first.summary["literal_bytes"], 5 * MIB + 123_456 + 3 * 4096)

        second = self.sync(source=source, destination=destination)
        self.assertEqual(0, second.summary["literal_bytes"])
        if self.remote:
            self.assertLess(second.wire, 64 * 1024)

        changed = random.Random(3).sample(range(size // 4096), size // 4096 // 100)
        self.fill(source, [(block * 4096, 4096) for block in changed], seed=500)
        third = self.sync(source=source, destination=destination)
        self.check(source, destination)
        self.assertLessEqual(third.summary["literal_bytes"], len(changed) * 4096)
        self.assertGreaterEqual(third.summary["literal_bytes"], len(changed) * 4096 * 0.9)

    def test_holes_are_zeroed_and_freed(self):
        source, destination = self.device("a", 32 * MIB), self.device("b", 32 * MIB)
        self.fill(destination, [(0, 32 * MIB)])
        self.sync(source=source, destination=destination)
        self.check(source, destination)
        os.sync()
        self.assertLess(
            os.stat(self.path("b")).st_blocks * 512, 8 * MIB, "the backing file keeps its space"
        )

    def test_image_to_device_and_back(self):
        image, device, back = self.path("image"), self.device("d", 24 * MIB), self.path("back")
        trees.sparse_file(image, 24 * MIB, [(MIB, 2 * MIB), (20 * MIB, 777)], seed=1)
        trees.write(back, b"old")
        self.sync(source=image, destination=device)
        self.check(image, device)
        self.sync(source=device, destination=back)
        self.assertEqual(compare.file_digest(image), compare.file_digest(back))
        self.assertLessEqual(os.stat(back).st_blocks * 512, 3 * MIB, "zeros must become holes")

    def test_larger_destination_keeps_its_tail(self):
        source, destination = self.device("a", 8 * MIB), self.device("b", 12 * MIB)
        self.fill(source, [(0, 8 * MIB)])
        self.fill(destination, [(8 * MIB, 4 * MIB)], seed=9)
        tail = self.bytes_of(destination, 4 * MIB, 8 * MIB)
        self.sync(source=source, destination=destination)
        self.check(source, destination)
        self.assertEqual(tail, self.bytes_of(destination, 4 * MIB, 8 * MIB))

    def test_smaller_destination_is_refused_before_a_byte_is_written(self):
        source, destination = self.device("a", 12 * MIB), self.device("b", 8 * MIB)
        self.fill(source, [(0, 12 * MIB)])
        result = self.sync(source=source, destination=destination, expect=23)
        self.assert_error(result, 23)
        self.assertEqual(bytes(8 * MIB), self.bytes_of(destination, 8 * MIB))

    def test_image_larger_than_the_device(self):
        trees.write_random(self.path("image"), 8 * MIB + 1, seed=1)
        destination = self.device("b", 8 * MIB)
        self.sync(source=self.path("image"), destination=destination, expect=23)

    def test_sizes_that_are_no_multiple_of_a_block(self):
        for size in (8 * MIB + 512, 8 * MIB + 4096 + 512, MIB - 512, 512):
            with self.subTest(size):
                source = self.device(f"a{size}", size)
                destination = self.device(f"b{size}", size + 1536)
                self.fill(source, [(0, size)])
                self.sync(source=source, destination=destination)
                self.check(source, destination)

    def test_image_of_odd_size_onto_a_device(self):
        for size in (1, 511, 5 * MIB + 123):
            with self.subTest(size):
                image = self.path(f"image{size}")
                trees.write_random(image, size, seed=size)
                destination = self.device(f"d{size}", 6 * MIB)
                self.fill(destination, [(0, 6 * MIB)], seed=99)
                kept = self.bytes_of(destination, 100, size)
                self.sync(source=image, destination=destination)
                self.check(image, destination)
                self.assertEqual(
                    kept, self.bytes_of(destination, 100, size), "bytes behind the image's end"
                )

    def test_large_sectors(self):
        size = 8 * MIB
        source = self.device("a", size)
        destination = self.device("b", size, "--sector-size", "4096")
        self.fill(source, [(0, size)])
        for direct in ("auto", "on", "off"):
            with self.subTest(direct):
                self.sync("--direct", direct, source=source, destination=destination)
                self.check(source, destination)
                self.fill(source, [(512, 512)], seed=len(direct))

    def test_io_backends(self):
        size = 16 * MIB + 512
        source, destination = self.device("a", size), self.device("b", size)
        for io in ("auto", "threads"):
            for direct in ("on", "off"):
                with self.subTest(f"{io} {direct}"):
                    self.fill(source, [(0, size)], seed=len(io + direct))
                    self.sync(
                        "--io", io, "--direct", direct, source=source, destination=destination
                    )
                    self.check(source, destination)

    def test_verify(self):
        source, destination = self.device("a", 8 * MIB), self.device("b", 8 * MIB)
        self.fill(source, [(0, 8 * MIB)])
        self.sync("--verify", source=source, destination=destination)
        self.check(source, destination)

    def test_dry_run_writes_nothing(self):
        source, destination = self.device("a", 4 * MIB), self.device("b", 4 * MIB)
        self.fill(source, [(0, 4 * MIB)])
        self.sync("-n", source=source, destination=destination)
        self.assertEqual(bytes(4 * MIB), self.bytes_of(destination, 4 * MIB))


@over(LOCAL)
class DeviceFailures(Devices):
    def test_read_only_destination(self):
        source, destination = self.device("a", 4 * MIB), self.device("b", 4 * MIB, "--read-only")
        self.fill(source, [(0, 4 * MIB)])
        result = self.sync(source=source, destination=destination, expect=21)
        self.assert_error(result, 21, destination)

    def test_source_that_cannot_be_read_to_its_end(self):
        source, destination = self.device("a", 8 * MIB), self.device("b", 8 * MIB)
        os.truncate(self.path("a"), 2 * MIB)
        blockdev.drop_buffers(source)
        if not self._unreadable(source):
            self.skipTest("the kernel reads zeros behind the end of a loop device's file")
        result = self.sync(source=source, destination=destination, expect=22)
        self.assert_error(result, 22, source)

    def _unreadable(self, source: str) -> bool:
        try:
            return len(self.bytes_of(source, 4096, 6 * MIB)) < 4096
        except OSError:
            return True

    def test_full_backing_of_the_destination(self):
        small = blockdev.mount_tmpfs(self, self.path("small"), "2m")
        destination = blockdev.loop_of_size(self, os.path.join(small, "b"), 8 * MIB)
        source = self.device("a", 8 * MIB)
        self.fill(source, [(0, 8 * MIB)])
        self.sync(source=source, destination=destination, expect=(20, 21))


class WrongTargets(ScratchCase):
    def test_character_device(self):
        trees.write(self.path("a"), b"x")
        result = self.volferry("sync", self.path("a"), "/dev/null", expect=2)
        self.assert_error(result, 2, "/dev/null")

    def test_missing_device_is_not_created_as_a_file(self):
        """A typing error below /dev must not fill the machine's memory."""
        self.need_root("a device")
        source = blockdev.loop_of_size(self, self.path("a"), MIB)
        self.volferry("sync", source, "/dev/volferry-no-such-device", expect=(2, 21))
        self.assertFalse(os.path.exists("/dev/volferry-no-such-device"))

    def test_mounted_device_is_refused(self):
        """Writing below a mounted file system destroys it."""
        blockdev.require_root("mounts")
        mounted = blockdev.mount_image(self, "ext4", self.dir, "m", 16 << 20)
        device = next(
            line.split()[0]
            for line in open("/proc/mounts", encoding="utf-8")
            if line.split()[1] == mounted
        )
        trees.write_random(self.path("image"), MIB, seed=1)
        result = self.volferry("sync", self.path("image"), device, expect=(2, 21))
        self.assert_error(result, (2, 21), device)
