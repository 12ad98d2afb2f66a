# SPDX-License-Identifier: Apache-2.0
"""The comparator must see every kind of difference, or every comparison is worthless."""

import os
import subprocess
import tempfile
import unittest

from compare_support import data, same


class Differences(unittest.TestCase):
    """One tree, a copy by cp -a, one change, the kind that is expected."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.source, self.copy = os.path.join(holder.name, "a"), os.path.join(holder.name, "b")
        os.makedirs(f"{self.source}/sub/deep")
        data.random_file(f"{self.source}/big", 3 * data.MIB + 17, "test")
        data.sparse_file(f"{self.source}/sparse", 8 * data.MIB, 512 << 10, "test")
        data.random_file(f"{self.source}/sub/one", 5000, "test")
        os.link(f"{self.source}/sub/one", f"{self.source}/sub/two")
        os.symlink("big", f"{self.source}/link")
        os.mkfifo(f"{self.source}/sub/fifo")
        data.set_times(self.source)
        subprocess.run(["cp", "-a", self.source, self.copy], check=True)

    def kinds(self, ignore=frozenset()):
        return {text.split(" ")[0] for text in same.differences(self.source, self.copy, ignore)}

    def keep_time(self, path, change):
        """Applies `change` to a path and puts its and its directory's times back."""
        place = os.path.dirname(path)
        before, parent = os.lstat(path), os.lstat(place)
        change(path)
        if os.path.lexists(path):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns), follow_symlinks=False)
        os.utime(place, ns=(parent.st_atime_ns, parent.st_mtime_ns))

    def test_equal(self):
        self.assertEqual(same.differences(self.source, self.copy), [])

    def test_one_byte(self):
        def flip(path):
            with open(path, "r+b", buffering=0) as out:
                byte = os.pread(out.fileno(), 1, 2 * data.MIB + 5)
                os.pwrite(out.fileno(), bytes([byte[0] ^ 1]), 2 * data.MIB + 5)
        self.keep_time(f"{self.copy}/big", flip)
        self.assertEqual(self.kinds(), {"content"})

    def test_byte_in_a_hole(self):
        def fill(path):
            with open(path, "r+b", buffering=0) as out:
                hole = os.lseek(out.fileno(), 0, os.SEEK_HOLE)
                os.pwrite(out.fileno(), b"x", hole + 4096)
        self.keep_time(f"{self.copy}/sparse", fill)
        self.assertEqual(self.kinds(), {"content"})

    def test_filled_hole_is_equal(self):
        def fill(path):
            with open(path, "r+b", buffering=0) as out:
                os.pwrite(out.fileno(), bytes(4096), os.lseek(out.fileno(), 0, os.SEEK_HOLE))
        self.keep_time(f"{self.copy}/sparse", fill)
        self.assertEqual(self.kinds(), set())

    def test_size(self):
        self.keep_time(f"{self.copy}/big", lambda path: os.truncate(path, 5))
        self.assertEqual(self.kinds(), {"size"})

    def test_mode(self):
        self.keep_time(f"{self.copy}/big", lambda path: os.chmod(path, 0o4711))
        self.assertEqual(self.kinds(), {"mode"})

    def test_directory_mode(self):
        os.chmod(f"{self.copy}/sub/deep", 0o711)
        self.assertEqual(self.kinds(), {"dirmode"})
        self.assertEqual(self.kinds(frozenset({"dirmode"})), set())

    def test_one_nanosecond(self):
        stamp = os.lstat(f"{self.copy}/big").st_mtime_ns + 1
        os.utime(f"{self.copy}/big", ns=(stamp, stamp))
        self.assertEqual(self.kinds(), {"mtime"})

    def test_directory_time(self):
        os.utime(f"{self.copy}/sub/deep", ns=(1, 1))
        self.assertEqual(self.kinds(), {"dirmtime"})
        self.assertEqual(self.kinds(frozenset({"dirmtime"})), set())

    def test_missing_and_extra(self):
        self.keep_time(f"{self.copy}/big", lambda path: os.rename(path, path + "2"))
        self.assertEqual(self.kinds(), {"missing", "extra"})

    def test_type(self):
        def replace(path):
            os.unlink(path)
            os.mkdir(path)
        self.keep_time(f"{self.copy}/sub/fifo", replace)
        self.assertEqual(self.kinds(), {"type"})

    def test_link_target(self):
        def retarget(path):
            os.unlink(path)
            os.symlink("gib", path)
        self.keep_time(f"{self.copy}/link", retarget)
        self.assertEqual(self.kinds(), {"target"})

    def test_broken_hard_link(self):
        def separate(path):
            with open(path, "rb") as old:
                content = old.read()
            mode = os.lstat(path).st_mode
            os.unlink(path)
            with open(path, "wb") as out:
                out.write(content)
            os.chmod(path, mode)
        self.keep_time(f"{self.copy}/sub/two", separate)
        self.assertEqual(self.kinds(), {"hardlink"})

    @unittest.skipUnless(os.geteuid() == 0, "changing owners needs root")
    def test_owner(self):
        self.keep_time(f"{self.copy}/big", lambda path: os.chown(path, 4242, 4242))
        self.assertEqual(self.kinds(), {"owner"})

    def test_xattr(self):
        try:
            os.setxattr(f"{self.copy}/big", "user.test", b"1")
        except OSError as error:
            self.skipTest(f"no user xattrs here: {error.strerror}")
        self.assertEqual(self.kinds(), {"xattr"})
        self.assertEqual(self.kinds(frozenset({"xattr"})), set())


class DeviceDifferences(unittest.TestCase):
    """Images stand in for devices: their size is found the same way."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.source, self.copy = f"{holder.name}/a", f"{holder.name}/b"
        for path in (self.source, self.copy):
            data.random_file(path, 2 * data.MIB, "device")

    def test_equal(self):
        self.assertEqual(same.device_differences(self.source, self.copy), [])

    def test_last_byte(self):
        with open(self.copy, "r+b", buffering=0) as out:
            os.pwrite(out.fileno(), bytes([os.pread(out.fileno(), 1, 2 * data.MIB - 1)[0] ^ 1]),
                      2 * data.MIB - 1)
        self.assertEqual(same.device_differences(self.source, self.copy), [f"content {self.copy}"])

    def test_size(self):
        os.truncate(self.copy, data.MIB)
        self.assertEqual(same.device_differences(self.source, self.copy), [f"size {self.copy}"])
        self.assertEqual(same.device_differences(self.copy, self.source), [])


if __name__ == "__main__":
    unittest.main()
