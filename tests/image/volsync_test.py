# SPDX-License-Identifier: Apache-2.0
"""The image in the pods that VolSync's operator makes: volsync_job.json says what they are."""

import os
import re
import secrets
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
USAGE, REFUSED = 2, 11
# What the operator keeps of the last 1024 bytes of a log.
SENT = re.compile(r"[sS]ent\s.+[bB]ytes\s.+[rR]eceived\s.+[bB]ytes")


class DropIn(ImageCase):
    def setUp(self):
        super().setUp()
        need_image(self)

    def pod(self, role: str, mode: str, privilege: str, volume: str, address: str, *more: str, keys: str = ""):
        """`more`: further parts of the specification. `keys`: psk.txt, if not as VolSync makes it."""
        ordinary = privilege == "unprivileged"
        context = volsync_specification()["podSecurityContext"]
        secret = self.secret({"psk.txt": keys or f"volsync:{self.key}"}, FS_GROUP if ordinary else None)
        groups = [context["fsGroup"]] if ordinary else []
        if mode == "block":
            groups.append(DISK_GROUP)
        words = podman_words(
            volsync_container(role, mode, privilege, *more),
            {"data": volume, "keys": secret},
            (context["runAsUser"], context["runAsGroup"]) if ordinary else IMAGE_OF_ROOT,
            groups,
            {"$DESTINATION": address},
        )
        return self.run_pod(role, words)

    def sync(self, mode: str, privilege: str, source: str, destination: str, address: str | None = None):
        far = self.pod("destination", mode, privilege, destination, "")
        near = self.pod("source", mode, privilege, source, address or self.DESTINATION, "port given")
        self.assert_synced(near, far, "diskrsync" if mode == "block" else "rsync")

    def assert_synced(self, near, far, name: str = "rsync"):
        self.assertEqual(0, near.wait(), near.logs())
        self.assertEqual(0, far.wait(), far.logs())
        log = near.logs().encode()[-1024:].decode()
        self.assertRegex(log, SENT)
        self.assertRegex(log, r"total size is \d+")
        self.assertRegex(log, rf"\n{name} completed in \d+s")

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
        self.assert_same(source, destination, except_paths=(b"lost+found",))

    def test_file_system_without_a_security_context(self):
        """Root without a capability reads root's key, and keeps root's files."""
        source, destination = self.filled(None)
        os.chmod(os.path.join(source, ".hidden"), 0o600)
        os.chmod(destination, 0o750)
        self.sync("filesystem", "nil context", source, destination)
        self.assertEqual(0o750, stat.S_IMODE(os.stat(destination).st_mode))
        self.assert_same(source, destination, except_paths=(b".", b"lost+found"))

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

    def test_openshift_without_a_port_and_a_secret_of_ones_own(self):
        """The source takes the first of several keys, the destination any."""
        source, destination = self.filled(FS_GROUP)
        other = secrets.token_hex(16)
        ends = ("filesystem", "unprivileged")
        far = self.pod(
            "destination", *ends, destination, "", "on OpenShift", keys=f"other:{other}\nvolsync:{self.key}\n"
        )
        near = self.pod(
            "source", *ends, source, self.DESTINATION, "on OpenShift", keys=f"volsync:{self.key}\nold:{other}\n"
        )
        self.assert_synced(near, far)
        self.assert_same(source, destination, ignore={"owner", "mtime"}, except_paths=(b".", b"lost+found"))

    def test_debugging(self):
        source, destination = self.filled(FS_GROUP)
        for role, volume in (("source", source), ("destination", destination)):
            with self.subTest(role):
                pod = self.pod(role, "filesystem", "unprivileged", volume, self.DESTINATION, "debugging")
                pod.wait_for_log("rm /tmp/exit-debug-if-removed")
                pod.remove("/tmp/exit-debug-if-removed")
                self.assertEqual(0, pod.wait(60), pod.logs())
        self.assertEqual(["lost+found"], os.listdir(destination))

    def test_destination_refuses_a_wrong_key_and_goes_on(self):
        source, destination = self.filled(FS_GROUP)
        ends = ("filesystem", "unprivileged")
        far = self.pod("destination", *ends, destination, "")
        wrong = self.pod("source", *ends, source, self.DESTINATION, keys=f"volsync:{secrets.token_hex(64)}")
        self.assertEqual(REFUSED, wrong.wait(60), wrong.logs())
        far.wait_for_log("refused the peer's key")
        self.assertEqual(["lost+found"], os.listdir(destination))
        self.assert_synced(self.pod("source", *ends, source, self.DESTINATION), far)

    def test_destination_with_a_key_that_is_none(self):
        _, destination = self.filled(FS_GROUP)
        far = self.pod("destination", "filesystem", "unprivileged", destination, "", keys="volsync:abc")
        self.assertEqual(USAGE, far.wait(60), far.logs())
        self.assertRegex(far.logs().splitlines()[-1], r"error: key file /keys/psk.txt line 1: .*16 to 64 bytes")

    def test_failures_are_seen_in_the_log(self):
        source, _ = self.filled(FS_GROUP)
        near = self.pod("source", "filesystem", "unprivileged", source, "no such host")
        self.assertNotEqual(0, near.wait(60))
        self.assertRegex(near.logs().encode()[-1024:].decode(), r"error: DESTINATION_ADDRESS: .*no such host")
