# SPDX-License-Identifier: Apache-2.0
"""Peers that move directory trees: rsync on each leg, VolSync's pair of passes, cp, tar, rclone."""

import os
import shlex

from .contender import Contender, pipeline
from .services import Plan, stunnel_missing

RSYNC = ["rsync", "-aHAXS", "--numeric-ids", "--delete"]


class LocalRsync(Contender):
    leg = "local"

    def __init__(self, name="rsync", extra=(), traits=None):
        self.name, self._extra, self.traits = name, list(extra), traits

    def plan(self, job):
        return Plan([], [RSYNC + self._extra + [job.new + "/", job.destination + "/"]])


class Copy(Contender):
    """cp -a: the whole tree again. `--update` where nothing but times need a look."""

    leg = "local"
    program = "cp"

    def __init__(self, name, traits, update=False, durable=False):
        self.name, self.traits, self._update, self.durable = name, traits, update, durable

    def plan(self, job):
        copy = ["cp", "-a"] + (["-u"] if self._update else []) + [job.new + "/.", job.destination]
        flush = [["sync", "-f", job.destination]] if self.durable else []
        return Plan([], [copy] + flush)


class Tar(Contender):
    leg = "local"
    program = "tar"
    name = "tar"
    traits = frozenset({"full"})

    def commands(self, job):
        sparse = ["-S"] if "sparse" in job.workload.traits else []
        pack = ["tar", "--format=posix", "--xattrs", "--acls", *sparse, "-C", job.new, "-cf", "-", "."]
        unpack = ["tar", "--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner", "-C",
                  job.destination, "-xpf", "-"]
        return shlex.join(pack), shlex.join(unpack)

    def plan(self, job):
        return Plan([], [pipeline(*self.commands(job))])


class Rclone(Contender):
    """rclone sync with metadata and links. Version 1.60 leaves what belongs to a directory. Not for trees with
    links: it gives a symbolic link's mode to the target, fails where there is none, and breaks hard links."""

    leg = "local"
    name = program = "rclone"
    traits = frozenset({"full", "same", "some"})
    unfit = frozenset({"device", "sparse", "links"})
    ignore = frozenset({"rootmeta", "dirmode", "dirowner", "dirmtime"})

    def plan(self, job):
        return Plan([], [["rclone", "--config", "", "-q", "sync", "--metadata", "--links",
                          "--create-empty-src-dirs", job.new, job.destination]])


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
        self.name, self._extra, self.traits = name, list(extra), traits

    def missing(self):
        return super().missing() or stunnel_missing()

    def steps(self, job, url):
        return [RSYNC + self._extra + [job.new + "/", url]]

    def plan(self, job):
        wire_port, far_port, relays = job.wire()
        entry_port, daemon_port = job.ports.local(), job.ports.local()
        far, near = job.services.stunnel_pair(wire_port, entry_port, far_port,
                                              f"connect = 127.0.0.1:{daemon_port}")
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
