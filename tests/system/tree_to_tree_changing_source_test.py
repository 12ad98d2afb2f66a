# SPDX-License-Identifier: Apache-2.0
"""Files that grow, shrink, vanish or change while they are read. The reader is slowed so that the
change falls within.
"""

import os
import threading

from support import trees
from support.case import MAIN_TRANSPORTS, over
from support.program import parse_events
from support.wait import wait_until

MIB = trees.MIB


class Mutator:
    """Calls `change(n)` again and again in a thread until closed."""

    def __init__(self, change):
        self._change = change
        self._over = threading.Event()
        self.rounds = 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self):
        while not self._over.wait(0.002):
            self._change(self.rounds)
            self.rounds += 1

    def close(self):
        self._over.set()
        self._thread.join()


@over(*MAIN_TRANSPORTS)
class ChangingSource:
    def setUp(self):
        super().setUp()
        self.moving = os.path.join(self.src, "m/moving")
        self.copy = os.path.join(self.dst, "m/moving")
        trees.write_random(self.moving, 8 * MIB, seed=1)
        for number in range(20):
            trees.write(
                os.path.join(self.src, f"{'az'[number % 2]}/f{number}"), b"steady %d" % number
            )

    def begin(self, *options):
        """Starts a slow sync and waits until the moving file is being copied."""
        process = self.start_sync("--bwlimit", "6M", *options)
        wait_until(self.copying, "the first bytes of the moving file", 20)
        return process

    def copying(self) -> bool:
        return any(info.st_blocks > 0 for info in infos(os.path.join(self.dst, "m")))

    def end(self, process, expect):
        result = parse_events(process.wait())
        self.assert_exit(result, expect)
        return result

    def assert_others_arrived(self):
        self.assert_same(except_paths=(b"m", b"m/moving"))

    def test_what_keeps_growing_is_reported(self):
        def grow(_):
            with open(self.moving, "ab") as stream:
                stream.write(b"more" * 1000)

        process = self.begin()
        mutator = Mutator(grow)
        self.addCleanup(mutator.close)
        # A later try only reads what differs, which may well fall between two changes.
        result = self.end(process, (0, 4))
        mutator.close()
        self.assert_others_arrived()
        if result.code == 4:
            self.assert_named(result, "moving")
            self.assertEqual("partial", result.summary["result"])
            self.assertFalse(
                os.path.exists(self.copy), "a mixture of versions must not take the name"
            )
        else:
            with open(self.copy, "rb") as copy, open(self.moving, "rb") as moving:
                content = copy.read()
                self.assertEqual(content, moving.read(len(content)), "one version, not a mixture")
        self.assert_no_temporaries()
        self.sync()
        self.assert_same()

    def test_what_keeps_changing_in_place_is_reported(self):
        def change(number):
            trees.overwrite(self.moving, number * 4099 % (8 * MIB - 4), b"%04d" % (number % 10_000))

        process = self.begin()
        mutator = Mutator(change)
        self.addCleanup(mutator.close)
        # A later try only reads what differs, which may well fall between two changes.
        result = self.end(process, (0, 4))
        mutator.close()
        if result.code == 4:
            self.assert_named(result, "moving")
        self.assert_others_arrived()

    def test_rewritten_with_the_old_mtime_put_back(self):
        """Only ctime gives this one away."""
        mtime = os.stat(self.moving).st_mtime_ns

        def change(number):
            trees.overwrite(self.moving, number * 4099 % (8 * MIB - 4), b"%04d" % (number % 10_000))
            trees.set_mtime(self.moving, mtime)

        process = self.begin()
        mutator = Mutator(change)
        self.addCleanup(mutator.close)
        result = self.end(process, (0, 4))
        mutator.close()
        if result.code == 4:
            self.assert_named(result, "moving")
        # Whatever became of it, the next run finds the content again although size and mtime agree.
        self.sync("-c")
        self.assert_same()

    def test_one_change_is_caught_up_with_or_reported(self):
        process = self.begin()
        trees.overwrite(self.moving, 0, b"changed at the front")
        trees.overwrite(self.moving, 8 * MIB - 100, b"changed at the end")
        result = self.end(process, (0, 4))
        self.assert_others_arrived()
        if result.code == 0:
            self.assert_same()
        else:
            self.assertFalse(os.path.exists(self.copy))

    def test_shrink_leaves_no_stale_tail(self):
        process = self.begin()
        os.truncate(self.moving, MIB)
        result = self.end(process, (0, 4))
        if result.code == 0:
            self.assert_same()
        else:
            self.assert_named(result, "moving")
            self.assertFalse(os.path.exists(self.copy))
        self.assert_others_arrived()

    def test_shrink_over_an_old_version(self):
        trees.write(self.copy, b"old version")
        process = self.start_sync("--bwlimit", "6M")
        wait_until(
            lambda: len(infos(os.path.join(self.dst, "m"))) > 1,
            "a temporary beside the old version",
            20,
        )
        os.truncate(self.moving, 0)
        result = self.end(process, (0, 4))
        content = os.path.getsize(self.copy)
        self.assertEqual(0 if result.code == 0 else len(b"old version"), content)

    def test_vanished_while_read(self):
        process = self.begin()
        os.unlink(self.moving)
        result = self.end(process, (0, 4))
        self.assert_others_arrived()
        if result.code == 4:
            self.assert_named(result, "moving")

    def test_coming_and_going_files_are_a_soft_failure_at_most(self):
        process = self.begin()

        def flicker(number):
            path = os.path.join(self.src, "z", f"flicker{number % 50}")
            if number % 100 < 50:
                trees.write(path, b"x")
            elif os.path.exists(path):
                os.unlink(path)

        mutator = Mutator(flicker)
        self.addCleanup(mutator.close)
        result = self.end(process, (0, 4))
        mutator.close()
        for error in result.summary["errors"]:
            self.assertIn("flicker", error["path"])
        self.assert_no_temporaries()
        for number in range(20):
            name = f"{'az'[number % 2]}/f{number}"
            with open(os.path.join(self.dst, name), "rb") as stream:
                self.assertEqual(b"steady %d" % number, stream.read())

    def test_a_removed_directory_does_not_stop_the_run(self):
        for number in range(200):
            trees.write(os.path.join(self.src, f"zz/{number % 20}/f{number}"), b"x" * 3000)
        process = self.begin()
        os.rename(os.path.join(self.src, "zz"), self.path("taken away"))
        result = self.end(process, (0, 4))
        self.assertTrue(os.path.exists(self.copy), f"\n{result}")


def infos(directory: str) -> list[os.stat_result]:
    """Of the entries of a directory that may not exist and whose files may go at any moment."""
    found = []
    try:
        for name in os.listdir(directory):
            found.append(os.lstat(os.path.join(directory, name)))
    except FileNotFoundError:
        pass
    return found
