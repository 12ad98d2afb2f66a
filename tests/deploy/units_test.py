# SPDX-License-Identifier: Apache-2.0
"""systemd knows every setting of the units in deploy/systemd. One that it does not know, or not in that section, it ignores
and names in the journal alone.
"""

import glob
import os
import subprocess

from support import trees
from support.case import ScratchCase

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = "/usr/local/bin/volferry"


class Units(ScratchCase):
    def setUp(self):
        super().setUp()
        self.need_tool("systemd-analyze")
        self.units = {}
        for path in sorted(glob.glob(os.path.join(REPOSITORY, "deploy/systemd/*@.*"))):
            with open(path, encoding="utf-8") as stream:
                self.units[os.path.basename(path)] = stream.read()

    def findings(self, units: dict[str, str]) -> list[str]:
        """What `systemd-analyze verify` says of these units. The program need not be installed; this machine's own units
        are not looked at.
        """
        program = self.path("bin/volferry")
        trees.write(program, b"#!/bin/sh\n", mode=0o755)
        paths = [self.path("units", name) for name in units]
        for path, text in zip(paths, units.values(), strict=True):
            trees.write(path, text.replace(PROGRAM, program).encode())
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *paths], capture_output=True, text=True, check=False
        )
        return [line for line in (done.stdout + done.stderr).splitlines() if "volferry" in line]

    def test_nothing_is_unknown(self):
        self.assertEqual(3, len(self.units))
        self.assertEqual([], self.findings(self.units))

    def test_a_setting_in_the_wrong_section_is_found(self):
        """The test of this test."""
        name = "volferry-sync@.service"
        wrong = self.units[name].replace("[Service]\n", "[Service]\nStartLimitIntervalSec=1h\n")
        self.assertIn("StartLimitIntervalSec", "\n".join(self.findings(self.units | {name: wrong})))
