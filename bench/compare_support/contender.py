# SPDX-License-Identifier: Apache-2.0
"""One program of the comparison: where it applies and how it is run on a workload.

A contender's `durable` says whether its success means that the data is on stable storage; ratios are
only taken among contenders with the same answer. `ignore` lists differences that the program is
known to leave (see same.py), everything else makes the run a failure.
"""

import shutil
from dataclasses import dataclass

from .machine import Ports
from .services import Services
from .workloads import Workload


@dataclass
class Job:
    """One run: `new` is to be brought to `destination`, both directories or both block devices."""

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
    # What a workload must have one of (None: anything), and what it must not have.
    traits = None
    unfit = frozenset({"device"})

    def missing(self):
        """Why it cannot run here, or None."""
        return None if shutil.which(self.program) else f"{self.program} is not installed"

    def applies(self, workload):
        return (self.leg in workload.legs and "own" not in workload.tags and
                not self.unfit & workload.traits and
                (self.traits is None or bool(self.traits & workload.traits)))

    def plan(self, job):
        raise NotImplementedError


def pipeline(*commands):
    """One step that runs commands as a pipeline and fails if any of them fails."""
    return ["bash", "-c", "set -o pipefail; exec 2>&1; " + " | ".join(commands)]
