# SPDX-License-Identifier: Apache-2.0
"""--exclude, --include and --exclude-from with rsync's pattern rules."""

import os
import shutil
import subprocess

from support import compare, trees
from support.case import MAIN_TRANSPORTS, over

FILES = (
    "top.log",
    "top.txt",
    "cache/a",
    "cache/sub/b",
    "x/cache/c",
    "x/y/cache",
    "x/y/z/deep.log",
    "x/foo/bar/baz",
    "foo/bar/baz",
    "foo/bar",
    "foo-1/file",
    "foo-12/file",
    "name with space/file",
    "a[1]/file",
    "star*/file",
    "build/out.o",
    "build/keep.o",
    "src/build/out.o",
)

CASES = {
    "name anywhere": ["--exclude", "cache"],
    "directories only": ["--exclude", "cache/"],
    "anchored": ["--exclude", "/cache"],
    "anchored directory": ["--exclude", "/cache/"],
    "star": ["--exclude", "*.log"],
    "anchored star": ["--exclude", "/*.log"],
    "star stops at slash": ["--exclude", "/x/*/deep.log"],
    "two stars cross slashes": ["--exclude", "/x/**/deep.log"],
    "two stars alone": ["--exclude", "x/**"],
    "path without anchor": ["--exclude", "foo/bar"],
    "tail of a path": ["--exclude", "bar/baz"],
    "question mark": ["--exclude", "foo-?"],
    "question mark twice": ["--exclude", "foo-??"],
    "set": ["--exclude", "foo-[0-9]"],
    "negated set": ["--exclude", "foo-[!1]*"],
    "class": ["--exclude", "foo-[[:digit:]]"],
    "escape": ["--exclude", "star\\*"],
    "escaped bracket": ["--exclude", "a\\[1]"],
    "three stars": ["--exclude", "/x/***"],
    "first match wins": ["--include", "keep.o", "--exclude", "*.o"],
    "first match wins reversed": ["--exclude", "*.o", "--include", "keep.o"],
    "only logs": ["--include", "*/", "--include", "*.log", "--exclude", "*"],
    "one subtree": ["--include", "/x/", "--include", "/x/y/***", "--exclude", "*"],
    "parent excluded hides an include": ["--exclude", "/x/", "--include", "/x/y/z/deep.log"],
    "space": ["--exclude", "name with space"],
}


@over(*MAIN_TRANSPORTS)
class Patterns:
    def setUp(self):
        super().setUp()
        for name in FILES:
            if name == "foo/bar":
                continue
            trees.write(os.path.join(self.src, name), name.encode())
        os.makedirs(self.dst)

    def clear(self):
        for name in os.listdir(self.dst):
            (
                shutil.rmtree(os.path.join(self.dst, name))
                if os.path.isdir(os.path.join(self.dst, name))
                else os.unlink(os.path.join(self.dst, name))
            )

    def test_like_rsync(self):
        self.need_tool("rsync")
        for name, options in CASES.items():
            with self.subTest(name):
                self.clear()
                expected = self.path("expected")
                shutil.rmtree(expected, ignore_errors=True)
                command = [
                    "rsync",
                    "-a",
                    "--modify-window=-1",
                    *options,
                    self.src + "/",
                    expected + "/",
                ]
                subprocess.run(command, check=True)
                self.sync(*options)
                self.assertEqual(
                    sorted(compare.snapshot(expected)), sorted(compare.snapshot(self.dst))
                )

    def test_exclude_from(self):
        rules = self.path("rules")
        trees.write(rules, b"# a comment\n\n*.log\n; another comment\n/cache/\n+ keep.o\n- *.o\n")
        self.sync("--exclude-from", rules)
        names = {path.decode() for path in compare.snapshot(self.dst)}
        self.assertNotIn("top.log", names)
        self.assertNotIn("x/y/z/deep.log", names)
        self.assertNotIn("cache", names)
        self.assertIn("x/cache/c", names)
        self.assertIn("build/keep.o", names)
        self.assertNotIn("build/out.o", names)
        self.assertIn("top.txt", names)

    def test_exclude_from_a_missing_file(self):
        result = self.sync("--exclude-from", self.path("no-such-file"), expect=2)
        self.assert_error(result, 2, "no-such-file")

    def test_excluded_content_is_not_read_or_counted(self):
        result = self.sync("--exclude", "*.o")
        self.assertEqual(len(FILES) - 1 - 3, result.summary["files_total"])

    def test_non_utf8_pattern_and_name(self):
        name = os.fsencode(self.src) + b"/latin-\xe9"
        trees.write(name, b"x")
        self.sync("--exclude", os.fsdecode(b"latin-\xe9"))
        self.assertNotIn(b"latin-\xe9", compare.snapshot(self.dst))

    def test_own_temporaries_are_never_transferred(self):
        trees.write(os.path.join(self.src, "x", ".volferry-" + "0f" * 16 + ".tmp"), b"x")
        self.sync()
        self.assert_no_temporaries()
        trees.write(os.path.join(self.dst, "x", ".volferry-" + "1e" * 16 + ".tmp"), b"stale")
        self.sync()
        self.assert_no_temporaries()
