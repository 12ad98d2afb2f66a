# SPDX-License-Identifier: Apache-2.0
"""The time that no program can beat on this machine, from the limits measured in the same run.

Both ends share the machine's cores, so what they have to do is added up as seconds of one core and divided
by the cores; disk and link work beside them; the longest of the three is the bound. It counts only what the
work cannot do without, each thing once and at the machine's own speed: what is read and written (through the
page cache; durable writes by the disk), stat calls, new files, and over TLS the bytes that were sent,
encrypted and decrypted. Where both ends hold a version, both are read, and over a network both are hashed.
Nothing is counted for ssh, whose cipher is its own choice.
"""

from dataclasses import dataclass, field

# What the limit "create" has written into each file.
CREATED_BYTES = 4096
# A connection is made, the key exchanged, and the last byte acknowledged.
ROUND_TRIPS = 3


@dataclass
class Work:
    """What has to be done: amounts by the name of the limit that they meet."""

    cores: dict = field(default_factory=dict)
    disk: dict = field(default_factory=dict)
    link_s: float = 0.0

    def core(self, name, amount):
        self.cores[name] = self.cores.get(name, 0) + amount


def bound(entry, workload, facts, limits, run):
    """{"bound_s", "by", "share"} for one line of the table, or None where it cannot be said.

    `run` has "cores" and "cold". `share` is the part of the bound's speed that was reached.
    """
    if entry["leg"] == "ssh" or "wall_s" not in entry:
        return None
    work = work_of(entry, workload, facts, run["cold"])
    if not set(work.cores) | set(work.disk) <= set(limits):
        return None
    times = {"cores": _seconds(work.cores, limits) / run["cores"],
             "disk": _seconds(work.disk, limits), "link": work.link_s}
    by = max(times, key=times.get)
    return {"bound_s": times[by], "by": by, "share": times[by] / entry["wall_s"]}


def work_of(entry, workload, facts, cold):
    """What the workload asks for on this line's leg."""
    traits, delta = workload.traits, "delta" in workload.traits
    entries = facts["files"] + facts["directories"]
    whole = facts["data_bytes"]
    moved = whole if "full" in traits else facts["changed"]
    replaced = delta and "device" not in traits and "-inplace" not in entry["contender"]
    written = whole if replaced else moved
    # What replaces a file on the same machine needs no look at the old one.
    read = whole * (1 if replaced and entry["leg"] == "local" else 2) if delta else moved
    work = Work()
    if "device" not in traits:
        work.core("stat", entries if "full" in traits else 2 * entries)
    if "full" in traits and "device" not in traits:
        work.core("create", facts["files"])
        written = max(0, written - CREATED_BYTES * facts["files"])
    work.core("cached read", read)
    if entry["durable"]:
        work.disk["disk write"] = written
    else:
        work.core("cached write", written)
    if cold:
        work.disk["disk read"] = read
    if entry["leg"] == "tls":
        _network(work, entry, workload, moved, 2 * whole if delta else 0)
    return work


def _network(work, entry, workload, moved, hashed):
    """Content counts as what was sent of it, as nobody knows how far it could be compressed."""
    if entry["wire_up"] is not None:
        moved = min(moved, entry["wire_up"])
    work.core("AES-128-GCM", 2 * moved)
    work.core("loopback TCP", moved)
    if hashed:
        work.core("xxh3", hashed)
    if workload.link:
        work.link_s = (moved * 8 / workload.link.bits_per_second +
                       ROUND_TRIPS * workload.link.round_trip_s)


def _seconds(amounts, limits):
    return sum(amount / limits[name]["rate"] for name, amount in amounts.items())


def bounds(table, facts, chosen, limits, run):
    """One dict a line of volferry's in the table, of factor 1, that has a bound."""
    known = {item["workload"]: item for item in facts}
    workloads = {workload.key: workload for workload in chosen}
    found = []
    for entry in table:
        key = entry["workload"]
        value = None if entry["peer"] else bound(entry, workloads[key], known[key], limits, run)
        if value:
            found.append({"workload": key, "leg": entry["leg"], "contender": entry["contender"],
                          "wall_s": entry["wall_s"]} | value)
    return found
