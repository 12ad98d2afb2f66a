# SPDX-License-Identifier: Apache-2.0
"""The controller's mover in the image: users, capabilities, volumes, and what a seccomp profile says of io_uring."""

import json
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pods import DISK_GROUP, IMAGE, RUNTIME, ImageCase, Pod, need_image  # noqa: E402

from support import trees  # noqa: E402

MIB = trees.MIB
GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/standalone.md")
FOUR = ["DAC_OVERRIDE", "CHOWN", "FOWNER", "SETGID"]


class Movers(ImageCase):
    def setUp(self):
        super().setUp()
        need_image(self)

    def mover(self, role: str, words: list[str], user: int, groups: list[int], caps: list[str], seccomp: str):
        keys = self.secret({"id": "pair", "psk": self.key}, user or None)
        words = [*words, "--user", f"{user}:{user}", "--volume", f"{keys}:/keys", *self.seccomp(seccomp)]
        for name in caps:
            words += ["--cap-add", name]
        for group in groups:
            words += ["--group-add", str(group)]
        if role == "source":
            words += ["--env", f"VOLFERRY_ADDRESS={self.DESTINATION}"]
        # As the controller's Jobs name it.
        return self.run_pod(role, ["--entrypoint", json.dumps(["volferry", "mover", role]), *words])

    def transfer(self, source: list[str], destination: list[str], user: int, groups=(), caps=(), seccomp="default"):
        """Both ends to their good end; the source's events."""
        far = self.mover("destination", destination, user, list(groups), list(caps), seccomp)
        near = self.mover("source", source, user, list(groups), list(caps), seccomp)
        self.assertEqual(0, near.wait(), near.logs())
        self.assertEqual(0, far.wait(), far.logs())
        ends = []
        for pod in (near, far):
            events = [json.loads(line) for line in pod.stdout().splitlines()]
            self.assertEqual("ok", events[-1]["result"])
            ends.append(next(event for event in events if event["event"] == "summary"))
        return ends

    def trees(self, group: int | None) -> tuple[str, str]:
        source, destination = self.volume("one", group), self.volume("two", group)
        trees.small_tree(os.path.join(source, "files"))
        trees.write_random(os.path.join(source, "large"), 8 * MIB, seed=1)
        os.symlink("/nowhere", os.path.join(source, "link"))
        self.give(source, group)
        return source, destination

    def as_a_plain_user(self, seccomp: str, backend: str):
        source, destination = self.trees(10001)
        for end in self.transfer(
            ["--volume", f"{source}:/data:ro"], ["--volume", f"{destination}:/data"], 10001, seccomp=seccomp
        ):
            self.assertEqual(backend, end["io"])
        self.assert_same(source, destination, ignore={"owner", "mode", "mtime"}, except_paths=(b".", b"lost+found"))

    def test_default_profile_answers_enosys(self):
        self.as_a_plain_user("default", "threads")

    def test_profile_that_answers_eperm(self):
        self.as_a_plain_user("EPERM", "threads")

    def test_profile_that_allows_io_uring(self):
        self.as_a_plain_user("io_uring allowed", "uring")

    def test_tree_as_root_with_four_capabilities(self):
        source, destination = self.trees(None)
        os.chown(os.path.join(source, "large"), 1001, 1002)
        os.chmod(os.path.join(source, "large"), 0o600)
        self.transfer(["--volume", f"{source}:/data:ro"], ["--volume", f"{destination}:/data"], 0, caps=FOUR)
        self.assert_same(source, destination)

    def test_device(self):
        for user, groups in ((10001, [DISK_GROUP]), (0, [])):
            with self.subTest(user=user):
                source, destination = self.device(f"one{user}", 16 * MIB), self.device(f"two{user}", 16 * MIB)
                trees.overwrite(source, 3 * MIB, trees.random_bytes(MIB, seed=2))
                self.transfer(
                    ["--device", f"{source}:/dev/block:r"], ["--device", f"{destination}:/dev/block"], user, groups
                )
                with open(source, "rb") as one, open(destination, "rb") as two:
                    self.assertEqual(one.read(), two.read())


class Guide(ImageCase):
    """The lines for podman in docs/standalone.md, with this test's volumes, network and image."""

    def setUp(self):
        super().setUp()
        need_image(self)

    def line(self, role: str, volume: str, keys: str) -> list[str]:
        with open(GUIDE, encoding="utf-8") as stream:
            lines = re.findall(r"^podman run (?:.*\\\n)*.*$", stream.read(), re.MULTILINE)
        (line,) = (line for line in lines if line.endswith(f" mover {role}"))
        line = re.sub(r"\\\n", " ", line)
        line = re.sub(r"/srv/\w+:", f"{volume}:", line).replace("/etc/volferry/keys:", f"{keys}:")
        line = line.replace("--network host", "").replace("replica.example", self.DESTINATION)
        words = shlex.split(line)
        self.assertEqual(["podman", "run", "--rm"], words[:3])
        image = next(word for word in words if word.startswith("volferry/mover:"))
        network = f"ns:/run/netns/{self.networks[role]}"
        words = [IMAGE if word == image else word for word in words[3:]]
        return ["--runtime", RUNTIME, "--pull", "never", "--network", network, *words]

    def test_as_written(self):
        source, destination = self.volume("one", None), self.volume("two", None)
        trees.small_tree(os.path.join(source, "files"))
        trees.write(os.path.join(source, "own"), b"own", mode=0o600)
        os.chown(os.path.join(source, "own"), 1001, 1002)
        os.mkfifo(os.path.join(source, "fifo"))
        keys = self.path("keys")
        trees.write(os.path.join(keys, "psk.txt"), f"volferry:{self.key}\n".encode(), mode=0o600)
        os.chmod(keys, 0o700)
        far = Pod(self, f"vf-{self.tag}-far", self.line("destination", destination, keys))
        near = Pod(self, f"vf-{self.tag}-near", self.line("source", source, keys))
        for pod in (near, far):
            self.assertEqual(0, pod.wait(), pod.logs())
            self.assertNotIn("termination log", pod.logs())
        self.assert_same(source, destination)
