# SPDX-License-Identifier: Apache-2.0
"""What is in the image, and what is not."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pods import IMAGE, ImageCase, command, need_image  # noqa: E402

LIMIT = 120_000_000


class Contents(ImageCase):
    """Looks into the unpacked image: unpacked once, none of these changes it."""

    root = ""

    def setUp(self):
        super().setUp()
        need_image(self)
        if not self.root:
            self.unpack()

    def unpack(self):
        name = command("podman", "create", "--pull", "never", IMAGE, env=self.environment).strip()
        self.addCleanup(subprocess.run, ["podman", "rm", "-f", name], capture_output=True, check=False)
        type(self).root = tempfile.mkdtemp(prefix="volferry-test-")
        self.addClassCleanup(shutil.rmtree, self.root)
        archive = subprocess.Popen(["podman", "export", name], stdout=subprocess.PIPE, env=self.environment)
        command("tar", "-x", "--numeric-owner", "-C", self.root, stdin=archive.stdout)
        self.assertEqual(0, archive.wait())

    def inside(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def test_size(self):
        size = int(command("du", "-s", "--apparent-size", "-B1", self.root).split()[0])
        self.assertLess(size, LIMIT)

    def test_what_it_is_said_to_be(self):
        config = json.loads(command("podman", "image", "inspect", IMAGE, env=self.environment))[0]["Config"]
        labels = config["Labels"]
        for name in ("title", "description", "licenses", "version", "revision", "created"):
            self.assertTrue(labels.get(f"org.opencontainers.image.{name}"), name)
        self.assertRegex(labels["org.opencontainers.image.created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual("10001:10001", config["User"])
        self.assertEqual(["/usr/bin/tini", "--", "/usr/bin/volferry"], config["Entrypoint"])

    def test_entry_points(self):
        for path in (
            "/bin/bash",
            "/mover-rsync-tls/client.sh",
            "/mover-rsync-tls/server.sh",
            "/usr/bin/ssh",
            "/usr/bin/tini",
            "/usr/bin/volferry",
        ):
            self.assertTrue(os.access(self.inside(path), os.X_OK), path)
        self.assertTrue(os.path.getsize(self.inside("/etc/ssl/certs/ca-certificates.crt")))

    def test_nothing_to_build_with_and_nothing_left_over(self):
        for name in ("gcc", "g++", "cc", "ld", "make", "cmake", "git"):
            self.assertFalse(os.path.lexists(self.inside(f"/usr/bin/{name}")), name)
        for folder in ("/var/lib/apt/lists", "/var/cache/apt/archives", "/var/cache/apt", "/setup", "/source", "/build", "/tmp"):
            files = [f for _, _, names in os.walk(self.inside(folder)) for f in names if f != "lock"]
            self.assertEqual([], files, folder)

    def test_nobody_gains_rights(self):
        for folder, _, names in os.walk(self.root):
            for name in names:
                mode = os.lstat(os.path.join(folder, name)).st_mode
                if stat.S_ISREG(mode):
                    self.assertFalse(mode & 0o6000, os.path.join(folder, name))

    def test_bill_of_materials(self):
        with open(self.inside("/usr/share/volferry/sbom.spdx.json"), encoding="utf-8") as stream:
            bill = json.load(stream)
        self.assertEqual("SPDX-2.3", bill["spdxVersion"])
        packages = {package["name"]: package for package in bill["packages"]}
        installed = command("dpkg-query", "--admindir", self.inside("/var/lib/dpkg"), "-W", "-f", "${Package}\t${Version}\n")
        for line in installed.splitlines():
            name, version = line.split("\t")
            self.assertEqual(version, packages[name]["versionInfo"], name)
        self.assertEqual(len(installed.splitlines()) + 1, len(packages))
        self.assertIn("volferry", packages)
        names = [package["SPDXID"] for package in bill["packages"]]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertTrue(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name), name)
        self.assertEqual(
            set(names),
            {r["relatedSpdxElement"] for r in bill["relationships"] if r["relationshipType"] == "DESCRIBES"},
        )
