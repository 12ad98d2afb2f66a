# SPDX-License-Identifier: Apache-2.0
"""Names of every kind at the root and nested, and paths longer than PATH_MAX."""

import os

from support import compare, trees
from support.case import ALL_TRANSPORTS, MAIN_TRANSPORTS, over


@over(*ALL_TRANSPORTS)
class OddNames:
    def test_arrive_and_settle(self):
        trees.odd_names_tree(self.src)
        self.sync_and_check()

    def test_are_itemized_in_one_escaped_line_each(self):
        trees.odd_names_tree(self.src)
        result = self.sync("-n", "-i")
        paths = {path for _, path in result.items}
        for number, name in enumerate(trees.ODD_NAMES):
            text = trees.escaped(name)
            if number % 3 == 0:
                self.assertIn(text + "/", paths)
                self.assertIn(text + "/inside", paths)
            elif number % 3 == 1:
                self.assertIn(text, paths)
            else:
                self.assertTrue(
                    any(path == text or path.startswith(text + " -> ") for path in paths), text
                )

    def test_are_deleted(self):
        trees.odd_names_tree(self.dst)
        os.makedirs(self.src)
        self.sync("--delete")
        self.assert_same()


@over(*MAIN_TRANSPORTS)
class OddRoot:
    def test_root_names(self):
        for number, name in enumerate(
            (" space ", "new\nline", "-dash", "$(id)", "quote'\"", "a\\b")
        ):
            with self.subTest(name):
                self.src = self.path(f"s{number}", name)
                self.dst = self.path(f"d{number}", name)
                trees.write(os.path.join(self.src, "file"), b"x")
                os.makedirs(self.dst)
                self.sync()
                self.assert_same()


@over(*ALL_TRANSPORTS)
class BeyondPathMax:
    def test_sync_change_delete(self):
        innermost = trees.deep_path(self.src, 60)
        self.addCleanup(os.close, innermost)

        def write(name: bytes, content: bytes) -> None:
            descriptor = os.open(
                name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=innermost
            )
            os.write(descriptor, content)
            os.close(descriptor)

        write(b"leaf", b"first")
        write(b"l" * 255, b"the longest name")
        os.symlink(b"target", b"link", dir_fd=innermost)
        os.mkdir(b"empty", dir_fd=innermost)
        self.sync_and_check()
        self.assertGreater(max(map(len, compare.snapshot(self.dst))), 12_000)

        write(b"leaf", b"second version")
        os.unlink(b"link", dir_fd=innermost)
        self.sync("--delete")
        self.assert_same()

        remove = os.path.join(self.src, "000".ljust(200, "d"))
        os.rename(remove, os.path.join(self.dir, "moved"))
        result = self.sync("--delete")
        self.assert_same()
        self.assertGreaterEqual(result.summary["files_deleted"], 2)
