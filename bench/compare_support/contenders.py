# SPDX-License-Identifier: Apache-2.0
"""The programs compared. Each says where it applies and how it is run on a workload.

A contender's `durable` says whether its success means that the data is on stable storage; ratios are
only taken among contenders with the same answer. `ignore` lists differences that the program is
known to leave (see same.py), everything else makes the run a failure.
"""

import os
import shlex
import shutil
from dataclasses import dataclass

from .machine import Ports
from .services import Plan, Services
from .workloads import Workload

RSYNC = ["rsync", "-aHAXS", "--numeric-ids", "--delete"]


@dataclass
class Job:
    """One run: `new` is to be brought to `destination`."""

    workload: Workload
    new: str
    destination: str
    ports: Ports
    services: Services

    def wire(self):
        """(port the client connects to, port the server listens on, relay servers between)."""
        wire_port = self.ports.wire()
        if self.workload.link is None:
            return wire_port, wire_port, []
        far_port = self.ports.local()
        relay = {"argv": self.workload.link.relay_argv(wire_port, far_port), "port": wire_port,
                 "uncounted": True}
        return wire_port, far_port, [relay]


class Contender:
    """Base: a peer program, found by `program` in PATH."""

    name = ""
    leg = ""
    program = "rsync"
    is_peer = True
    durable = False
    ignore = frozenset()

    def missing(self):
        """Why it cannot run here, or None."""
        return None if shutil.which(self.program) else f"{self.program} is not installed"

    def applies(self, workload):
        return self.leg in workload.legs and "own" not in workload.tags

    def plan(self, job):
        raise NotImplementedError


def pipeline(*commands):
    """One step that runs commands as a pipeline and fails if any of them fails."""
    return ["bash", "-c", "set -o pipefail; exec 2>&1; " + " | ".join(commands)]


class LocalRsync(Contender):
    leg = "local"

    def __init__(self, name="rsync", extra=(), traits=None):
        self.name, self._extra, self._traits = name, list(extra), traits

    def applies(self, workload):
        return super().applies(workload) and (self._traits is None or
                                              bool(self._traits & workload.traits))

    def plan(self, job):
        return Plan([], [RSYNC + self._extra + [job.new + "/", job.destination + "/"]])


class Copy(Contender):
    """cp -a: the whole tree again. `--update` where nothing but times need a look."""

    leg = "local"
    program = "cp"

    def __init__(self, name, traits, update=False, durable=False):
        self.name, self._traits, self._update, self.durable = name, traits, update, durable

    def applies(self, workload):
        return super().applies(workload) and bool(self._traits & workload.traits)

    def plan(self, job):
        copy = ["cp", "-a"] + (["-u"] if self._update else []) + [job.new + "/.", job.destination]
        flush = [["sync", "-f", job.destination]] if self.durable else []
        return Plan([], [copy] + flush)


class Tar(Contender):
    leg = "local"
    program = "tar"
    name = "tar"

    def applies(self, workload):
        return super().applies(workload) and "full" in workload.traits

    def commands(self, job):
        sparse = ["-S"] if "sparse" in job.workload.traits else []
        pack = ["tar", "--format=posix", "--xattrs", "--acls", *sparse, "-C", job.new, "-cf", "-", "."]
        unpack = ["tar", "--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner", "-C",
                  job.destination, "-xpf", "-"]
        return shlex.join(pack), shlex.join(unpack)

    def plan(self, job):
        return Plan([], [pipeline(*self.commands(job))])


class SshTar(Tar):
    leg = "ssh"
    name = "tar-ssh"

    def plan(self, job):
        port = job.ports.wire()
        pack, unpack = self.commands(job)
        remote = shlex.join([*job.services.ssh_command(port), "bench", unpack])
        return Plan([job.services.sshd(port)], [pipeline(pack, remote)])


class SshRsync(Contender):
    leg = "ssh"
    name = "rsync-ssh"

    def plan(self, job):
        port = job.ports.wire()
        shell = shlex.join(job.services.ssh_command(port))
        return Plan([job.services.sshd(port)],
                    [RSYNC + ["-e", shell, job.new + "/", f"bench:{job.destination}/"]])


class TlsRsync(Contender):
    """rsync against a daemon behind a stunnel pair with a PSK."""

    leg = "tls"

    def __init__(self, name="rsync-tls", extra=(), traits=None):
        self.name, self._extra, self._traits = name, list(extra), traits

    def missing(self):
        return super().missing() or (None if shutil.which("stunnel") or shutil.which("stunnel4")
                                     else "stunnel4 is not installed")

    def applies(self, workload):
        return super().applies(workload) and (self._traits is None or
                                              bool(self._traits & workload.traits))

    def steps(self, job, url):
        return [RSYNC + self._extra + [job.new + "/", url]]

    def plan(self, job):
        wire_port, far_port, relays = job.wire()
        entry_port, daemon_port = job.ports.local(), job.ports.local()
        far, near = job.services.stunnel_pair(wire_port, entry_port, daemon_port, far_port)
        daemon = job.services.rsync_daemon(daemon_port, job.destination)
        return Plan([daemon, far, *relays, near],
                    self.steps(job, f"rsync://127.0.0.1:{entry_port}/data/"))


class VolSyncPair(TlsRsync):
    """The two rsync passes of VolSync's rsync-tls mover with its flags, without its symlink pass and
    its final sleep. It has no -X, leaves the root's own metadata, and its second pass touches
    directories it deletes from."""

    ignore = frozenset({"xattr", "rootmeta", "dirmtime"})

    def __init__(self):
        super().__init__("volsync-tls")

    def steps(self, job, url):
        names = os.path.join(job.services.base, "volsync-list")
        with open(names, "wb") as out:
            out.writelines(os.fsencode(name) + b"\n" for name in sorted(os.listdir(job.new)))
        return [["rsync", "-aAhHSxz", "-r", "--exclude=lost+found", "--itemize-changes",
                 "--info=stats2,misc2", f"--files-from={names}", job.new + "/", url],
                ["rsync", "-rx", "--exclude=lost+found", "--ignore-existing",
                 "--ignore-non-existing", "--delete", "--itemize-changes", "--info=stats2,misc2",
                 job.new + "/", url]]


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
            return "delta" in workload.traits and "own" not in workload.tags
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


def everybody(legs, binary, backends):
    """All contenders of the given legs; without a binary only the peers."""
    full, delta, same, some = ({name} for name in ("full", "delta", "same", "some"))
    peers = [
        LocalRsync(),
        LocalRsync("rsync-delta", ["--no-whole-file"], delta),
        Copy("cp", full | delta),
        Copy("cp-u", same | some, update=True),
        Copy("cp+sync", full | delta, durable=True),
        Tar(),
        SshRsync(),
        SshTar(),
        TlsRsync(),
        TlsRsync("rsync-tls-inplace", ["--inplace"], delta),
        VolSyncPair(),
    ]
    own = []
    if binary:
        for backend in backends:
            for leg in ("local", "ssh", "tls"):
                own.append(Volferry(leg, binary, backend))
            own.append(Volferry("tls", binary, backend, inplace=True))
            own.append(Volferry("local", binary, backend, durable=True))
            own.append(Volferry("tls", binary, backend, durable=True))
    return [contender for contender in own + peers if contender.leg in legs]
