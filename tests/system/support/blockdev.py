# SPDX-License-Identifier: Apache-2.0
"""Loop devices, file systems on them, and tmpfs mounts, each undone by a cleanup of the test."""

import os
import shutil
import subprocess
import unittest


def require_root(reason: str) -> None:
    if os.geteuid() != 0:
        raise unittest.SkipTest(f"needs root: {reason}")


def _command(*args: str) -> str:
    """Runs an administration command; a refusal by the kernel skips the test with its reason."""
    if not shutil.which(args[0]):
        raise unittest.SkipTest(f"{args[0]} is not installed")
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise unittest.SkipTest(f"{' '.join(args)}: {done.stderr.strip()}")
    return done.stdout.strip()


def attach_loop(case: unittest.TestCase, image: str, *options: str) -> str:
    require_root("loop devices")
    device = _command("losetup", "-f", "--show", *options, image)
    case.addCleanup(subprocess.run, ["losetup", "-d", device], check=False, capture_output=True)
    return device


def loop_of_size(case: unittest.TestCase, image: str, size: int, *options: str) -> str:
    with open(image, "wb") as stream:
        stream.truncate(size)
    return attach_loop(case, image, *options)


def _unmount(target: str) -> None:
    if subprocess.run(["umount", target], check=False, capture_output=True).returncode != 0:
        subprocess.run(["umount", "-l", target], check=False, capture_output=True)


def mount(case: unittest.TestCase, target: str, *args: str) -> str:
    require_root("mounts")
    os.makedirs(target, exist_ok=True)
    _command("mount", *args, target)
    case.addCleanup(_unmount, target)
    return target


def mount_tmpfs(case: unittest.TestCase, target: str, size: str) -> str:
    return mount(case, target, "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs")


_MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


def mount_image(
    case: unittest.TestCase, kind: str, directory: str, name: str, size: int, *mkfs_options: str
) -> str:
    """Makes a sparse image, a file system on it, and mounts it; returns the mount point."""
    require_root("mounts")
    image = os.path.join(directory, name + ".img")
    with open(image, "wb") as stream:
        stream.truncate(size)
    _command(*_MKFS[kind], *mkfs_options, image)
    device = attach_loop(case, image)
    return mount(case, os.path.join(directory, name), device)


def device_size(device: str) -> int:
    descriptor = os.open(device, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def drop_buffers(device: str) -> None:
    """Writes back and forgets what the kernel holds of a device, so that its backing file shows
    the truth.
    """
    subprocess.run(["blockdev", "--flushbufs", device], check=False, capture_output=True)
