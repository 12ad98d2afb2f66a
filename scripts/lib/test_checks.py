# SPDX-License-Identifier: Apache-2.0
"""The checks must fail on what they forbid: each is run on a small repository with one fault."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))


class Checks(unittest.TestCase):
    """check(PROGRAM, {path: text}) gives (exit code, output)."""

    def check(self, program, files, executable=()):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            for path, text in files.items():
                place = os.path.join(root, path)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "w", encoding="utf-8") as out:
                    out.write(text)
                if path in executable:
                    os.chmod(place, 0o755)
            subprocess.run(["git", "-C", root, "add", "-A"], check=True)
            done = subprocess.run([sys.executable, os.path.join(HERE, program)], cwd=root,
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def include(self, path, included):
        return self.check("check_includes", {path: f'\n#include "{included}"\n'})

    def test_allowed_includes(self):
        for path, included in (("engine/io/a.cc", "engine/base/error.h"),
                               ("engine/session/a.cc", "engine/transport/wire/frame.h"),
                               ("engine/transport/a.cc", "engine/transport/wire/frame.h"),
                               ("engine/io/internal/a.cc", "engine/io/internal/a.h"),
                               ("engine/sync.h", "engine/base/error.h"),
                               ("cli/a.cc", "engine/sync.h")):
            self.assertEqual(self.include(path, included), (0, ""), f"{path} {included}")

    def test_forbidden_includes(self):
        for path, included in (("engine/io/a.cc", "engine/transport/channel.h"),
                               ("engine/delta/a.h", "engine/io/file.h"),
                               ("engine/transport/a.cc", "engine/delta/rolling.h"),
                               ("engine/transport/wire/a.cc", "engine/transport/channel.h"),
                               ("engine/base/a.cc", "engine/session/a.h"),
                               ("engine/session/a.cc", "cli/arguments.h"),
                               ("engine/session/a.cc", "engine/io/internal/a.h"),
                               ("engine/io/a.cc", "file.h")):
            code, output = self.include(path, included)
            self.assertEqual(code, 1, f"{path} {included}")
            self.assertIn(f"{path}:2: {included}", output)

    def test_links(self):
        good = {"a.md": "[b](docs/b.md#the-second) [c](docs) [w](https://example.org)\n",
                "docs/b.md": "## The second\n[a](../a.md)\n```\n[no](link)\n```\n`[no](x)`\n"}
        self.assertEqual(self.check("check_links", good), (0, ""))
        for text in ("[b](docs/c.md)\n", "[b](docs/b.md#third)\n", '<img src="none.svg">\n'):
            code, output = self.check("check_links", {**good, "a.md": text})
            self.assertEqual(code, 1, text)
            self.assertIn("a.md:1: ", output)

    def test_file_contents(self):
        self.assertEqual(self.check("check_files", {"a.sh": "#!/bin/sh\n", "b.cc": "int a;\n"},
                                    {"a.sh"}), (0, ""))
        for path, text, executable in (("a.cc", "// see /wo" + "rk/main/a\n", ()),
                                       ("a.cc", "int a; \n", ()),
                                       ("a.cc", "<<<<<<" + "< ours\n", ()),
                                       ("a.sh", "#!/bin/sh\n", ()),
                                       ("a.cc", "int a;\n", ("a.cc",))):
            code, output = self.check("check_files", {path: text}, executable)
            self.assertEqual(code, 1, text)
            self.assertIn(f"{path}:1: ", output)

    def test_python_syntax(self):
        self.assertEqual(self.check("check_python", {"a.py": "a = 1\n"}), (0, ""))
        code, output = self.check("check_python", {"a": "#!/usr/bin/env python3\nif:\n"})
        self.assertEqual(code, 1)
        self.assertIn("a:2: ", output)



class GoReport(unittest.TestCase):
    """go_report must fail when anything failed or nothing ran, and keep the reasons."""

    def report(self, *events, arguments=()):
        lines = "".join(json.dumps(dict(event, Package="p")) + "\n" for event in events)
        done = subprocess.run([sys.executable, os.path.join(HERE, "go_report"), *arguments], input=lines,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_passed(self):
        code, output = self.report({"Action": "pass", "Test": "TestA"}, {"Action": "pass", "Elapsed": 1.5})
        self.assertEqual(code, 0)
        self.assertIn("1 tests passed, 0 failed, 0 skipped in 1 packages", output)

    def test_failed(self):
        code, output = self.report({"Action": "output", "Test": "TestA", "Output": "wrong answer\n"},
                                   {"Action": "fail", "Test": "TestA"}, {"Action": "fail", "Elapsed": 1.5})
        self.assertEqual(code, 1)
        self.assertIn("wrong answer", output)

    def test_skipped(self):
        code, output = self.report({"Action": "output", "Test": "TestA", "Output": "    a_test.go:1: no loop device\n"},
                                   {"Action": "skip", "Test": "TestA"}, {"Action": "pass", "Test": "TestB"})
        self.assertEqual(code, 0)
        self.assertIn("TestA: a_test.go:1: no loop device", output)

    def test_nothing_ran(self):
        self.assertEqual(self.report({"Action": "skip", "Elapsed": 0.0})[0], 1)
        code, output = self.report({"Action": "pass", "Elapsed": 0.0})
        self.assertEqual(code, 1)
        self.assertIn("none  p", output)

    def failed(self, *events):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "failed")
            self.report(*events, arguments=[path])
            with open(path, encoding="utf-8") as file:
                return file.read()

    def test_names_what_to_run_once_more(self):
        events = [{"Action": "fail", "Test": "TestB/one"}, {"Action": "fail", "Test": "TestB"}, {"Action": "fail", "Test": "TestA"},
                  {"Action": "pass", "Test": "TestC"}, {"Action": "fail", "Elapsed": 1.5}]
        self.assertEqual("p ^(TestA|TestB)$\n", self.failed(*events))

    def test_nothing_to_run_once_more_where_a_package_failed_whole(self):
        self.assertEqual("", self.failed({"Action": "pass", "Test": "TestA"}, {"Action": "fail", "Elapsed": 1.5}))
        self.assertEqual("", self.failed({"Action": "fail", "Test": "TestA"}, {"Action": "build-fail"}))

    def test_failed_build(self):
        self.assertEqual(self.report({"Action": "pass", "Test": "TestA"}, {"Action": "build-fail"})[0], 1)


if __name__ == "__main__":
    unittest.main()
