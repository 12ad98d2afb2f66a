# SPDX-License-Identifier: Apache-2.0
"""The mover's image as a container runtime runs it: podman with its own root, a read-only root file system, capabilities,
a seccomp profile and a network namespace; the volumes, keys and devices as a kubelet mounts them.
"""

import copy
import functools
import json
import os
import secrets
import shutil
import stat
import subprocess
import time

from support import blockdev, trees
from support.case import ScratchCase

IMAGE = os.environ.get("VOLFERRY_IMAGE", "localhost/volferry/mover:test")
RUNTIME = "runc"
FS_GROUP = 5678
DISK_GROUP = 6
_IO_URING = ["io_uring_setup", "io_uring_enter", "io_uring_register"]
_HERE = os.path.dirname(os.path.abspath(__file__))


def command(*words: str, **options) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


@functools.cache
def default_seccomp() -> dict:
    with open("/usr/share/containers/seccomp.json", encoding="utf-8") as stream:
        return json.load(stream)


def seccomp_with(action: dict) -> dict:
    """The default profile with an own rule for io_uring."""
    profile = copy.deepcopy(default_seccomp())
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in _IO_URING]
    profile["syscalls"].append({"names": _IO_URING, "args": [], **action})
    return profile


SECCOMP = {
    # io_uring is not among the calls that it knows: ENOSYS.
    "default": lambda: None,
    "EPERM": lambda: seccomp_with({"action": "SCMP_ACT_ERRNO", "errnoRet": 1}),
    "io_uring allowed": lambda: seccomp_with({"action": "SCMP_ACT_ALLOW"}),
}


def merged(*parts: dict) -> dict:
    """Parts of a container's specification: lists are joined, objects merged."""
    result: dict = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, dict):
                result[key] = merged(result.get(key, {}), value)
            elif isinstance(value, list):
                result[key] = result.get(key, []) + value
            else:
                result[key] = value
    return result


class Pod:
    """One running container. `logs` is what a kubelet would keep of it."""

    def __init__(self, case: "ImageCase", name: str, words: list[str]):
        self.name = name
        self._case = case
        self._environment = case.environment
        case.addCleanup(self.close)
        command("podman", "run", "--detach", "--name", name, *words, env=case.environment)

    def logs(self) -> str:
        done = subprocess.run(
            ["podman", "logs", self.name], capture_output=True, text=True, check=False, env=self._environment
        )
        return done.stderr + done.stdout

    def stdout(self) -> str:
        return command("podman", "logs", self.name, env=self._environment)

    def running(self) -> bool:
        return self._state("Running") == "true"

    def _state(self, field: str) -> str:
        # podman 4.3 fails where the process ends while it looks; the next look is right.
        words = ["podman", "inspect", "--format", f"{{{{.State.{field}}}}}", self.name]
        for _ in range(3):
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=self._environment)
            if done.returncode == 0 or "no such process" not in done.stderr:
                break
        self._case.assertEqual(0, done.returncode, done.stderr)
        return done.stdout.strip()

    def wait_for_log(self, words: str, timeout: float = 60) -> None:
        end = time.monotonic() + timeout
        while words not in self.logs():
            if time.monotonic() > end or not self.running():
                raise AssertionError(f"{self.name} has not said '{words}':\n{self.logs()}")
            time.sleep(0.05)

    def wait(self, timeout: float = 120) -> int:
        end = time.monotonic() + timeout
        while self.running():
            if time.monotonic() > end:
                raise AssertionError(f"{self.name} still runs after {timeout} s:\n{self.logs()}")
            time.sleep(0.05)
        return int(self._state("ExitCode"))

    def remove(self, path: str) -> None:
        """A file as the container sees it. By /proc, since `podman exec` fails where the tests run in a chroot."""
        os.unlink(f"/proc/{self._state('Pid')}/root{path}")

    def close(self) -> None:
        subprocess.run(
            ["podman", "rm", "--force", "--time", "0", "--volumes", self.name],
            capture_output=True, check=False, env=self._environment,
        )  # fmt: skip


@functools.cache
def _why_none_runs() -> str:
    """Empty where one does: machines without control groups, say, can build the image and not run it."""
    conf = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000"]
    words = ["podman", "run", "--rm", "--runtime", RUNTIME, "--network", "none", *conf, "--entrypoint", "/bin/true", IMAGE]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


class ImageCase(ScratchCase):
    """A test with two network namespaces joined by a veth pair, one for each end."""

    DESTINATION = "10.90.0.2"

    def setUp(self) -> None:
        super().setUp()
        self.need_root("containers with devices and their own networks")
        for tool in ("podman", RUNTIME, "ip"):
            self.need_tool(tool)
        conf = self.path("containers.conf")
        trees.write(conf, b'[containers]\ndefault_ulimits=["nofile=20000:20000","nproc=20000:20000"]\n')
        self.environment = os.environ | {"CONTAINERS_CONF": conf}
        self.tag = secrets.token_hex(3)
        self.key = secrets.token_hex(64)
        self._join()

    def _join(self) -> None:
        near, far = (f"vf-{self.tag}-{end}" for end in ("a", "b"))
        self.networks = {"source": near, "destination": far}
        for name in (near, far):
            command("ip", "netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", name], capture_output=True, check=False)
            command("ip", "-n", name, "link", "set", "lo", "up")
        command("ip", "link", "add", f"v{self.tag}", "netns", near, "type", "veth", "peer", "name", f"v{self.tag}", "netns", far)
        for name, address in ((near, "10.90.0.1"), (far, self.DESTINATION)):
            command("ip", "-n", name, "address", "add", f"{address}/24", "dev", f"v{self.tag}")
            command("ip", "-n", name, "address", "add", f"fd00:90::{address[-1]}/64", "dev", f"v{self.tag}", "nodad")
            command("ip", "-n", name, "link", "set", f"v{self.tag}", "up")

    # ---- what a kubelet mounts

    def secret(self, files: dict[str, str], group: int | None) -> str:
        """A Secret's volume: files behind two links, for root and the pod's group alone."""
        folder = self.path(f"secret-{secrets.token_hex(3)}")
        inner = os.path.join(folder, "..1")
        os.makedirs(inner)
        os.symlink("..1", os.path.join(folder, "..data"))
        for name, text in files.items():
            path = os.path.join(inner, name)
            trees.write(path, text.encode(), mode=0o600 if group is None else 0o640)
            os.chown(path, 0, group or 0)
            os.symlink(f"..data/{name}", os.path.join(folder, name))
        return folder

    def volume(self, name: str, group: int | None) -> str:
        """A file system of its own, given to the pod's group where there is one."""
        path = blockdev.mount_image(self, "ext4", self.dir, name, 64 * trees.MIB)
        self.give(path, group)
        return path

    def give(self, path: str, group: int | None) -> None:
        if group is None:
            return
        for folder, folders, files in os.walk(path):
            os.chown(folder, 0, group)
            os.chmod(folder, 0o2775)
            for name in files:
                file = os.path.join(folder, name)
                if not os.path.islink(file):
                    os.chown(file, 0, group)
                    os.chmod(file, 0o664)

    def device(self, name: str, size: int) -> str:
        """A device that the disk group may write: how a runtime gives block volumes to other users than root."""
        path = blockdev.loop_of_size(self, self.path(f"{name}.img"), size)
        before = os.stat(path)
        self.addCleanup(os.chmod, path, stat.S_IMODE(before.st_mode))
        self.addCleanup(os.chown, path, before.st_uid, before.st_gid)
        os.chown(path, 0, DISK_GROUP)
        os.chmod(path, 0o660)
        return path

    # ---- running

    def run_pod(self, role: str, words: list[str], *arguments: str) -> Pod:
        """With its own root, read-only, in the role's network."""
        if reason := _why_none_runs():
            self.skipTest(f"no container runs on this machine: {reason}")
        log = self.path(f"termination-{role}-{secrets.token_hex(2)}")
        trees.write(log, mode=0o666)
        return Pod(
            self, f"vf-{self.tag}-{role}-{secrets.token_hex(2)}",
            [
                "--runtime", RUNTIME, "--network", f"ns:/run/netns/{self.networks[role]}", "--read-only",
                "--read-only-tmpfs=false", "--security-opt", "no-new-privileges", "--cap-drop", "ALL",
                "--mount", "type=tmpfs,destination=/tmp", "--volume", f"{log}:/dev/termination-log",
                "--pull", "never", *words, IMAGE, *arguments,
            ],
        )  # fmt: skip

    def seccomp(self, name: str) -> list[str]:
        profile = SECCOMP[name]()
        if profile is None:
            return []
        path = self.path(f"seccomp-{name.replace(' ', '-')}.json")
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(profile, stream)
        return ["--security-opt", f"seccomp={path}"]


@functools.cache
def volsync_specification() -> dict:
    with open(os.path.join(_HERE, "volsync_job.json"), encoding="utf-8") as stream:
        return json.load(stream)


def volsync_container(role: str, *names: str) -> dict:
    """`names`: the parts for volume mode, privilege and the rest."""
    parts = volsync_specification()
    return merged(*(parts[name] for name in ("every", role, *names)))


def podman_words(container: dict, mounts: dict[str, str], user: tuple[int, int] | None, groups: list[int], substitute: dict) -> list[str]:
    """A container of a pod in podman's words. `mounts`: volumes by name. /tmp is the runtime's already."""
    context = container["securityContext"]
    words = []
    for name in context["capabilities"].get("add", []):
        words += ["--cap-add", name]
    if "runAsUser" in context:
        user = (context["runAsUser"], 0)
    if user:
        words += ["--user", f"{user[0]}:{user[1]}"]
    for group in groups:
        words += ["--group-add", str(group)]
    for variable in container["env"]:
        value = variable["value"]
        words += ["--env", f"{variable['name']}={substitute.get(value, value)}"]
    for mount in container.get("volumeMounts", []):
        if mount["mountPath"] != "/tmp":
            words += ["--volume", f"{mounts[mount['name']]}:{mount['mountPath']}"]
    for device in container.get("volumeDevices", []):
        words += ["--device", f"{mounts[device['name']]}:{device['devicePath']}"]
    return ["--entrypoint", json.dumps(container["command"]), *words]


def need_image(case: ImageCase) -> None:
    if not shutil.which("podman") or subprocess.run(["podman", "image", "exists", IMAGE], check=False).returncode:
        case.skipTest(f"{IMAGE} is not there: scripts/build-image --tag {IMAGE}")
