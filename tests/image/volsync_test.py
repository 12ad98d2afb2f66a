# SPDX-License-Identifier: Apache-2.0
"""The image in the pods that VolSync's operator makes: volsync_job.json says what they are."""

import os
import re
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pods import (  # noqa: E402
    DISK_GROUP,
    FS_GROUP,
    ImageCase,
    need_image,
    podman_words,
    volsync_container,
    volsync_specification,
)

from support import trees  # noqa: E402

MIB = trees.MIB
# The user of an image that `scripts/build-image --user 0` made.
IMAGE_OF_ROOT = (0, 0)
# What the operator keeps of the last 1024 bytes of a log.
SENT = re.compile(r"[sS]ent\s.+[bB]ytes\s.+[rR]eceived\s.+[bB]ytes")


class DropIn(ImageCase):
    def setUp(self):
        super().setUp()
        need_image(self)

    def pod(self, role: str, mode: str, privilege: str, volume: str, address: str):
        ordinary = privilege == "unprivileged"
        context = volsync_specification()["podSecurityContext"]
        keys = self.secret({"psk.txt": f"volsync:{self.key}"}, FS_GROUP if ordinary else None)
        groups = [context["fsGroup"]] if ordinary else []
        if mode == "block":
            groups.append(DISK_GROUP)
        words = podman_words(
            volsync_container(role, mode, privilege),
            {"data": volume, "keys": keys},
            (context["runAsUser"], context["runAsGroup"]) if ordinary else IMAGE_OF_ROOT,
            groups,
            {"$DESTINATION": address},
        )
        return self.run_pod(role, words)

    def sync(self, mode: str, privilege: str, source: str, destination: str, address: str | None = None):
        far = self.pod("destination", mode, privilege, destination, "")
        near = self.pod("source", mode, privilege, source, address or self.DESTINATION)
        self.assertEqual(0, near.wait(), near.logs())
        self.assertEqual(0, far.wait(), far.logs())
        log = near.logs().encode()[-1024:].decode()
        self.assertRegex(log, SENT)
        self.assertRegex(log, r"total size is \d+")
        self.assertRegex(log, r"\ndiskrsync completed in \d+s" if mode == "block" else r"\nrsync completed in \d+s")
        return near, far

    def filled(self, group: int | None) -> tuple[str, str]:
        source, destination = self.volume("one", group), self.volume("two", group)
        for name in ("#first", ".hidden", "with space", "dir with space/file"):
            trees.write(os.path.join(source, name), name.encode())
        for target, name in (("#first", "same"), ("../up", "up"), ("/abso lute", "out")):
            os.symlink(target, os.path.join(source, name))
        trees.write_random(os.path.join(source, "large"), 8 * MIB, seed=1)
        self.give(source, group)
        return source, destination

    def test_file_system_unprivileged(self):
        source, destination = self.filled(FS_GROUP)
        before = os.stat(destination)
        self.sync("filesystem", "unprivileged", source, destination)
        after = os.stat(destination)
        self.assertEqual((before.st_mode, before.st_uid, before.st_gid), (after.st_mode, after.st_uid, after.st_gid))
        self.assert_same(source, destination, ignore={"owner", "mtime"}, except_paths=(b".", b"lost+found"))
        self.sync("filesystem", "unprivileged", source, destination)

    def test_file_system_privileged(self):
        source, destination = self.filled(None)
        os.chown(os.path.join(source, "large"), 1001, 1002)
        os.chmod(os.path.join(source, ".hidden"), 0o400)
        self.sync("filesystem", "privileged", source, destination)
        self.assert_same(source, destination)

    def test_file_system_without_a_security_context(self):
        """Root without a capability reads root's key, and keeps root's files."""
        source, destination = self.filled(None)
        os.chmod(os.path.join(source, ".hidden"), 0o600)
        os.chmod(destination, 0o750)
        self.sync("filesystem", "nil context", source, destination)
        self.assertEqual(0o750, stat.S_IMODE(os.stat(destination).st_mode))
        self.assert_same(source, destination, except_paths=(b".",))

    def test_block_unprivileged_and_privileged(self):
        for privilege in ("unprivileged", "privileged"):
            with self.subTest(privilege):
                source, destination = self.device(f"{privilege}1", 16 * MIB), self.device(f"{privilege}2", 24 * MIB)
                trees.overwrite(source, 24 * 1024, trees.random_bytes(MIB, seed=3))
                self.sync("block", privilege, source, destination)
                with open(source, "rb") as one, open(destination, "rb") as two:
                    self.assertEqual(one.read(), two.read(16 * MIB))

    def test_ipv6(self):
        source, destination = self.filled(FS_GROUP)
        self.sync("filesystem", "unprivileged", source, destination, "fd00:90::2")

    def test_failures_are_seen_in_the_log(self):
        source, _ = self.filled(FS_GROUP)
        near = self.pod("source", "filesystem", "unprivileged", source, "no such host")
        self.assertNotEqual(0, near.wait(60))
        self.assertRegex(near.logs().encode()[-1024:].decode(), r"error: DESTINATION_ADDRESS: .*no such host")
