# SPDX-License-Identifier: Apache-2.0
"""All contenders."""

from .peers_devices import Dd, Diskrsync, TlsDiskrsync
from .peers_trees import (Copy, LocalRsync, Rclone, SshRsync, SshTar, Tar, TlsRsync, VolSyncPair)
from .volferry import Volferry


def everybody(legs, binary, backends):
    """All contenders of the given legs; without a binary only the peers."""
    full, delta, same, some, text = (frozenset({name})
                                     for name in ("full", "delta", "same", "some", "text"))
    peers = [
        LocalRsync(),
        LocalRsync("rsync-delta", ["--no-whole-file"], delta),
        Copy("cp", full | delta),
        Copy("cp-u", same | some, update=True),
        Copy("cp+sync", full | delta, durable=True),
        Tar(),
        Rclone(),
        SshRsync(),
        SshTar(),
        TlsRsync(),
        TlsRsync("rsync-tls-inplace", ["--inplace"], delta),
        TlsRsync("rsync-tls-zstd", ["-z", "--zc=zstd"], text),
        VolSyncPair(),
        Dd("dd"),
        Dd("dd+sync", durable=True),
        Diskrsync(),
        TlsDiskrsync(),
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
