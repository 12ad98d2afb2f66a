# SPDX-License-Identifier: Apache-2.0
"""This program as a contender."""

import os
import shlex

from .contender import Contender
from .services import Plan


class Volferry(Contender):
    """This program, on one leg."""

    is_peer = False

    def __init__(self, leg, binary, backend, durable=False, inplace=False):
        self.leg, self.program, self._backend = leg, binary, backend
        self.durable, self._inplace = durable, inplace
        self.name = "volferry" + ("-inplace" if inplace else "") + ("-durable" if durable else "")
        self.name += "" if backend == "auto" else f"[{backend}]"

    def missing(self):
        return None if os.access(self.program, os.X_OK) else f"no program at {self.program}"

    def applies(self, workload):
        if self.leg not in workload.legs:
            return False
        if self._inplace:
            return "delta" in workload.traits and not workload.traits & {"device"} and \
                "own" not in workload.tags
        return not (self.durable and "own" in workload.tags)

    def plan(self, job):
        command = [self.program, "sync", "--delete", "--json", "--io", self._backend,
                   "--durable" if self.durable else "--no-durable"]
        if self._inplace:
            command.append("--inplace")
        return {"local": self._local, "ssh": self._ssh, "tls": self._tls}[self.leg](job, command)

    @staticmethod
    def _local(job, command):
        return Plan([], [command + [job.new, job.destination]])

    def _ssh(self, job, command):
        port = job.ports.wire()
        shell = shlex.join(job.services.ssh_command(port))
        return Plan([job.services.sshd(port)],
                    [command + ["--ssh", shell, "--remote-command", self.program, job.new,
                                f"bench:{job.destination}"]])

    def _tls(self, job, command):
        wire_port, far_port, relays = job.wire()
        server = {"argv": [self.program, "serve", "--listen", f"127.0.0.1:{far_port}", "--root",
                           job.destination, "--psk-file", job.services.psk_file,
                           "--io", self._backend], "port": far_port}
        return Plan([server, *relays], [command + ["--psk-file", job.services.psk_file, job.new,
                                                   f"tls://127.0.0.1:{wire_port}"]])
