# SPDX-License-Identifier: Apache-2.0
"""--bwlimit, --memory, --threads, --io, --direct, and the fallback where io_uring is refused."""

import os
import re
import subprocess

from support import seccomp, trees
from support.case import LOCAL, MAIN_TRANSPORTS, SSH_PUSH, ScratchCase, TLS_PUSH, over

MIB = trees.MIB


@over(*MAIN_TRANSPORTS, SSH_PUSH)
class Bandwidth:
    def test_takes_at_least_the_time_of_the_bytes(self):
        trees.write_random(os.path.join(self.src, "f"), 6 * MIB, seed=1)
        result = self.sync("--bwlimit", "4Mi")
        self.assert_same()
        # 1.5 s at the full rate; half a second of burst is allowed.
        self.assertGreaterEqual(result.elapsed_s, 1.0)

    def test_spellings(self):
        trees.write(os.path.join(self.src, "f"), b"x" * 1000)
        for rate in ("100000", "500K", "50M", "1.5Gi", "1G"):
            self.sync("--bwlimit", rate)
        for rate in ("-1", "fast", "5X", ""):
            result = self.sync("--bwlimit", rate, expect=2)
            self.assert_error(result, 2, "bwlimit")


@over(LOCAL, TLS_PUSH)
class Memory:
    def test_bound_is_kept_by_a_large_file(self):
        trees.write_random(os.path.join(self.src, "f"), 256 * MIB, seed=1)
        trees.write_random(os.path.join(self.dst, "f"), 256 * MIB, seed=2)
        for memory in (64, 128):
            with self.subTest(memory):
                result = self.sync("--memory", f"{memory}Mi", "--no-durable")
                self.assertLess(result.peak_kib, (memory + 48) * 1024, f"\n{result}")
                self.assertGreater(result.peak_kib, 0)
                self.assert_same()
                trees.overwrite(os.path.join(self.src, "f"), memory, b"other")

    def test_default_is_kept_by_many_small_files(self):
        for number in range(4000):
            trees.write(os.path.join(self.src, f"d{number % 40}/f{number}"), b"%d" % number * 100)
        result = self.sync("--memory", "64Mi")
        self.assertLess(result.peak_kib, (64 + 48) * 1024)
        self.assert_same()

    def test_too_little_is_refused(self):
        trees.write(os.path.join(self.src, "f"))
        result = self.sync("--memory", "1K", expect=2)
        self.assert_error(result, 2, "memory")


@over(LOCAL, TLS_PUSH)
class Parallelism:
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src, files=200)
        trees.write_random(os.path.join(self.src, "f"), 64 * MIB, seed=1)

    def test_threads(self):
        """More threads asked for are more threads seen."""
        few = self.sync("--threads", "1", "--io", "threads")
        self.assert_same()
        subprocess.run(
            ["rm", "-rf", os.path.join(self.dst, "f"), os.path.join(self.dst, "d0")], check=True
        )
        many = self.sync("--threads", "8", "--io", "threads")
        self.assert_same()
        self.assertGreater(many.peak_threads, few.peak_threads)

    def test_bad_numbers(self):
        for option in ("--threads", "--streams"):
            for value in ("0", "-1", "many", "100000"):
                with self.subTest(f"{option} {value}"):
                    self.assert_error(self.sync(option, value, expect=2), 2, option.lstrip("-"))


@over(*MAIN_TRANSPORTS)
class IoBackends:
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        trees.write_random(os.path.join(self.src, "f"), 20 * MIB + 17, seed=1)

    def test_threads(self):
        result = self.sync("--io", "threads")
        self.assertEqual("threads", result.summary["io"])
        self.assert_same()

    def test_uring(self):
        result = self.sync("--io", "uring", expect=(0, 1, 2))
        if result.code != 0:
            self.assertRegex(result.stderr, "io_uring|uring")
            self.skipTest(f"io_uring is refused here: {result.stderr.strip()}")
        self.assertEqual("uring", result.summary["io"])
        self.assert_same()

    def test_direct_modes_give_equal_results(self):
        for io in ("auto", "threads"):
            for mode in ("auto", "on", "off"):
                with self.subTest(f"{io} {mode}"):
                    self.sync("--io", io, "--direct", mode)
                    self.assert_same()
                    trees.overwrite(
                        os.path.join(self.src, "f"), 5 * MIB + 3, f"{io} {mode}".encode()
                    )
        self.sync()
        self.assert_same()

    def test_unknown_names(self):
        for option in ("--io", "--direct"):
            self.assert_error(self.sync(option, "fast", expect=2), 2, option.lstrip("-"))


class SystemCalls(ScratchCase):
    """What the options do, as strace sees it."""

    def setUp(self):
        super().setUp()
        self.need_tool("strace")
        trees.write_random(os.path.join(self.src, "f"), 20 * MIB + 17, seed=1)

    def traced(self, calls: str, *options) -> str:
        log = self.path("strace")
        prefix = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={calls}"]
        self.volferry("sync", *options, self.src, self.dst, prefix=prefix)
        with open(log, encoding="utf-8", errors="replace") as stream:
            return stream.read()

    def test_direct_on_and_off(self):
        calls = "openat,openat2,fcntl"
        self.assertIn(
            "O_DIRECT|",
            self.traced(calls, "--io", "threads", "--direct", "on").replace("O_DIRECTORY", "-"),
        )
        os.unlink(os.path.join(self.dst, "f"))
        off = self.traced(calls, "--io", "threads", "--direct", "off").replace("O_DIRECTORY", "-")
        self.assertNotIn("O_DIRECT", off)

    def test_threads_backend_makes_no_ring(self):
        self.assertNotIn("io_uring_setup", self.traced("io_uring_setup", "--io", "threads"))

    def test_durable_syncs_and_no_durable_does_not(self):
        calls = "fsync,fdatasync,syncfs,sync_file_range,sync"
        synced = self.traced(calls, "--io", "threads")
        self.assertRegex(synced, r"\b(fsync|fdatasync|syncfs)\(")
        os.unlink(os.path.join(self.dst, "f"))
        self.assertRegex(
            self.traced(calls, "--io", "threads", "--durable"), r"\b(fsync|fdatasync|syncfs)\("
        )
        os.unlink(os.path.join(self.dst, "f"))
        loose = self.traced(calls, "--io", "threads", "--no-durable")
        self.assertNotRegex(loose, r"\b(fsync|fdatasync|syncfs|sync)\(")

    def test_names_are_synced_before_success_is_reported(self):
        """The last sync comes after the last rename."""
        log = self.traced("rename,renameat,renameat2,linkat,fsync,syncfs", "--io", "threads")
        calls = re.findall(r"\b(rename|renameat|renameat2|linkat|fsync|syncfs)\(", log)
        names = [index for index, call in enumerate(calls) if call not in ("fsync", "syncfs")]
        self.assertTrue(names, "no file was renamed into place")
        self.assertTrue(any(call in ("fsync", "syncfs") for call in calls[names[-1] :]), calls)


class RingRefused(ScratchCase):
    """A seccomp filter that answers io_uring_setup as container runtimes do, and one that kills
    the caller.
    """

    def check(self, refusal: str):
        trees.small_tree(self.src)
        trees.write_random(os.path.join(self.src, "f"), 5 * MIB, seed=1)
        result = self.volferry(
            "sync", "--json", "-v", self.src, self.dst, preexec=seccomp.refuse_io_uring(refusal)
        )
        self.assert_same()
        self.assertEqual("threads", result.summary["io"])
        lines = [line for line in result.stderr.splitlines() if "uring" in line]
        self.assertEqual(1, len(lines), f"want one line that says so\n{result}")

    def test_eperm(self):
        self.check("EPERM")

    def test_enosys(self):
        self.check("ENOSYS")

    def test_kill(self):
        self.check("kill")

    def test_forced_uring_says_why_not(self):
        trees.small_tree(self.src)
        result = self.volferry(
            "sync",
            "--io",
            "uring",
            self.src,
            self.dst,
            preexec=seccomp.refuse_io_uring("EPERM"),
            expect=(1, 2),
        )
        self.assert_error(result, (1, 2), "uring")
