# SPDX-License-Identifier: Apache-2.0
"""Peers that move block devices: dd, and diskrsync on one machine and behind stunnel."""

import os
import re
import shlex
import shutil

from .contender import Contender
from .services import Plan, stunnel_missing

HERE = os.path.dirname(os.path.realpath(__file__))


class DevicePeer(Contender):
    """Base: devices and nothing else."""

    leg = "local"
    traits = frozenset({"device"})
    unfit = frozenset()


class Dd(DevicePeer):
    program = "dd"

    def __init__(self, name, durable=False):
        self.name, self.durable = name, durable

    def plan(self, job):
        flush = ["conv=fsync"] if self.durable else []
        return Plan([], [["dd", f"if={job.new}", f"of={job.destination}", "bs=1M", *flush]])


def built_diskrsync():
    """Where bench/get-diskrsync puts the version that bench/diskrsync/go.mod names."""
    with open(os.path.join(HERE, "..", "diskrsync", "go.mod")) as module:
        version = re.search(r"diskrsync v(\S+)", module.read()).group(1)
    cache = os.environ.get("VOLFERRY_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "volferry")
    return os.path.join(cache, "diskrsync", version, "diskrsync")


class Diskrsync(DevicePeer):
    name = "diskrsync"

    def __init__(self):
        self.program = built_diskrsync()
        if not os.access(self.program, os.X_OK):
            self.program = shutil.which("diskrsync") or self.program

    def missing(self):
        return None if os.access(self.program, os.X_OK) else "not there; bench/get-diskrsync builds it"

    def plan(self, job):
        return Plan([], [[self.program, "--no-compress", job.new, job.destination]])


class TlsDiskrsync(Diskrsync):
    """Both ends speak over standard input and output, which are sockets here: stunnel starts the target
    for the connection, and bash gives the source a connection to the tunnel. The last reading waits
    until the target has ended, since the source ends before it."""

    leg = "tls"
    name = "diskrsync-tls"

    def missing(self):
        return super().missing() or stunnel_missing()

    def plan(self, job):
        wire_port, far_port, relays = job.wire()
        entry_port = job.ports.local()
        far, near = job.services.stunnel_pair(
            wire_port, entry_port, far_port,
            f"exec = {self.program}\nexecArgs = diskrsync --target --no-compress {job.destination}")
        source = shlex.join([self.program, "--source", job.new])
        client = f"exec 3<>/dev/tcp/127.0.0.1/{entry_port} && {source} <&3 >&3 && cat <&3"
        return Plan([far, *relays, near], [["bash", "-c", client]])
