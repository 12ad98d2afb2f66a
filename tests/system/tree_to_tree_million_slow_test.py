# SPDX-License-Identifier: Apache-2.0
"""One million files: resident memory below 200 MiB on each side."""

import os

from support import blockdev, trees
from support.case import LOCAL, TLS_PUSH, over

COUNT = 1_000_000
LIMIT_KIB = 200 * 1024


@over(TLS_PUSH)
class Million:
    def setUp(self):
        super().setUp()
        # A file system of its own, with inodes enough: the scratch one may lack them, and removal
        # is an unmount.
        mounted = blockdev.mount_image(
            self,
            "ext4",
            self.dir,
            "many",
            14 << 30,
            "-N",
            str(int(COUNT * 2.2)),
            "-m",
            "0",
            "-O",
            "^has_journal",
        )
        self.src, self.dst = os.path.join(mounted, "src"), os.path.join(mounted, "dst")

    def build(self):
        for directory in range(COUNT // 1000):
            path = os.path.join(self.src, f"{directory % 20:02d}", f"d{directory:04d}")
            os.makedirs(path)
            here = os.open(path, os.O_RDONLY)
            for number in range(1000):
                file = os.open(f"file-{number:04d}", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here)
                if number % 4 == 0:
                    os.write(file, b"%d/%d" % (directory, number))
                os.close(file)
            os.close(here)

    def assert_memory(self, result, what):
        self.assertLess(result.peak_kib, LIMIT_KIB, f"client, {what}\n{result}")
        for server in self._servers.values():
            self.assertLess(server.process.peak_kib, LIMIT_KIB, f"server, {what}")
        print(
            f"{what}: client {result.peak_kib} KiB, servers {[s.process.peak_kib for s in self._servers.values()]} KiB, "
            f"{result.elapsed_s:.1f} s"
        )

    def test_copy_noop_and_delete(self):
        self.build()
        first = self.sync("--no-durable", timeout=600)
        self.assertEqual(COUNT, first.summary["files_transferred"])
        self.assert_memory(first, "copy")
        second = self.sync("-i", "--delete", timeout=600)
        self.assert_noop(second)
        self.assert_memory(second, "nothing changed")
        self.check_names()
        empty = self.path("empty")
        os.mkdir(empty)
        third = self.sync("--delete", "--no-durable", source=empty, timeout=600)
        self.assertEqual([], os.listdir(self.dst))
        self.assert_memory(third, "delete")

    def check_names(self):
        """Names, sizes, modes, owners and times; the comparator of content is for smaller trees."""
        for directory in range(0, COUNT // 1000, 37):
            path = os.path.join(f"{directory % 20:02d}", f"d{directory:04d}")
            facts = []
            for root in (self.src, self.dst):
                with os.scandir(os.path.join(root, path)) as listing:
                    infos = sorted(
                        (item.name, item.stat(follow_symlinks=False)) for item in listing
                    )
                facts.append(
                    [(n, i.st_size, i.st_mode, i.st_uid, i.st_gid, i.st_mtime_ns) for n, i in infos]
                )
            self.assertEqual(1000, len(facts[0]))
            self.assertEqual(facts[0], facts[1])


@over(LOCAL)
class OneDirectory:
    def test_two_hundred_thousand_names_in_one_directory(self):
        mounted = blockdev.mount_image(
            self, "ext4", self.dir, "flat", 4 << 30, "-N", "500000", "-m", "0", "-O", "^has_journal"
        )
        self.src, self.dst = os.path.join(mounted, "src"), os.path.join(mounted, "dst")
        for number in range(200_000):
            trees.write(os.path.join(self.src, f"name-{number:06d}"))
        result = self.sync("--no-durable", timeout=300)
        self.assertLess(result.peak_kib, LIMIT_KIB)
        self.assertEqual(200_000, len(os.listdir(self.dst)))
