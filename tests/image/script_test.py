# SPDX-License-Identifier: Apache-2.0
"""What scripts/build-image asks of buildah. Nothing is built: a stand-in writes down how it was called."""

import os
import subprocess

from support import trees
from support.case import ScratchCase

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAND_IN = b"""#!/bin/sh
printf '%s\\n' "$@" >>"$CALLS"
"""


class BuildImage(ScratchCase):
    def setUp(self):
        super().setUp()
        for tool in ("buildah", "mmdebstrap", "podman", "runc"):
            self.need_tool(tool)  # else the script would install it

    def build(self, *options: str) -> tuple[subprocess.CompletedProcess, list[str]]:
        calls, folder = self.path("calls"), self.path("bin")
        trees.write(calls)
        trees.write(os.path.join(folder, "buildah"), STAND_IN, mode=0o755)
        environment = os.environ | {"CALLS": calls, "PATH": f"{folder}:{os.environ['PATH']}"}
        words = ["scripts/build-image", "--base", "base", "--program", "/bin/true", "--tag", "a:b", *options]
        done = subprocess.run(words, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
        with open(calls, encoding="utf-8") as stream:
            return done, stream.read().splitlines()

    def test_user(self):
        for options, user in (((), "10001"), (("--user", "0"), "0"), (("--user", "1234"), "1234")):
            with self.subTest(user):
                done, calls = self.build(*options)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertEqual("build", calls[0])
                self.assertIn(f"MOVER_UID={user}", calls)

    def test_user_that_is_no_number(self):
        for word in ("root", "-1", "08", "0:0", "1 2"):
            with self.subTest(word):
                done, calls = self.build("--user", word)
                self.assertEqual(1, done.returncode)
                self.assertIn("--user", done.stderr)
                self.assertEqual([], calls)
