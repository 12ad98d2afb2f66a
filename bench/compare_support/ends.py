# SPDX-License-Identifier: Apache-2.0
"""The two ends of one workload: `new` is to be brought to `destination`, which starts each run as the old
version. Directories on scratch file systems, or block devices."""

import os
import shutil
import subprocess

from . import data, same
from .machine import Device, Scratch

# What a file system needs beside the data: journal, inodes, room to breathe.
SPARE = 1.15
RESERVE = 256 << 20


def file_system_size(workload, scale):
    """Of the one file system at each end."""
    # Beside the new version lies the old one; beside the destination what is built to replace it.
    copies = 1 if workload.traits & {"full"} and not workload.traits & {"device"} else 2
    return int(copies * SPARE * workload.space(scale)) + RESERVE


def disk_need(workload, scale):
    """Bytes that the ends of the workload take."""
    size = file_system_size(workload, scale)
    return size + 2 * workload.space(scale) if "device" in workload.traits else 2 * size


def make_ends(workload, scale, base, own_namespaces):
    """Builds the workload's data. The result is to be closed."""
    kind = DeviceEnds if "device" in workload.traits else TreeEnds
    return kind(workload, scale, base, own_namespaces)


class TreeEnds:
    """Two directories, each on a file system of its own."""

    def __init__(self, workload, scale, base, own_namespaces):
        size = file_system_size(workload, scale)
        self._source = Scratch(base, "source", size, own_namespaces)
        self._target = Scratch(base, "target", size, own_namespaces)
        self.new, self._old = (os.path.join(self._source.path, name) for name in ("new", "old"))
        self.destination = os.path.join(self._target.path, "volume")
        os.mkdir(self.new)
        os.mkdir(self._old)
        changed = workload.build(self.new, self._old, scale)
        self.facts = data.volume_facts(self.new) | {"changed": changed}
        self._source.settle()

    def reset(self):
        """The old version at the destination, on the device."""
        if os.path.exists(self.destination):
            shutil.rmtree(self.destination)
        os.mkdir(self.destination)
        subprocess.run(["cp", "-a", self._old + "/.", self.destination], check=True)
        self._target.settle()

    def settle(self):
        self._target.settle()

    def differences(self, ignore):
        return same.differences(self.new, self.destination, ignore)

    def close(self):
        self._target.close()
        self._source.close()


class DeviceEnds:
    """Two block devices. The images are kept beside them, as the old one is written before each run."""

    def __init__(self, workload, scale, base, own_namespaces):
        self._images = Scratch(base, "images", file_system_size(workload, scale), own_namespaces)
        new, old = (os.path.join(self._images.path, name) for name in ("new", "old"))
        os.mkdir(new)
        os.mkdir(old)
        changed = workload.build(new, old, scale)
        self.facts = data.volume_facts(new) | {"changed": changed}
        self._old = os.path.join(old, "volume.img")
        image = os.path.join(new, "volume.img")
        self._source = Device(base, "source-device", os.path.getsize(image))
        self._target = Device(base, "target-device", os.path.getsize(image))
        self._source.fill(image)
        os.unlink(image)
        self.new, self.destination = self._source.path, self._target.path

    def reset(self):
        """The old version on the target device."""
        self._target.fill(self._old)

    def settle(self):
        self._target.settle()

    def differences(self, _ignore):
        return same.device_differences(self.new, self.destination)

    def close(self):
        self._target.close()
        self._source.close()
        self._images.close()
