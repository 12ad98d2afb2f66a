# SPDX-License-Identifier: Apache-2.0
"""How far ahead volferry wants to be, as data, and whether a run reached it.

The targets are set for scale 1 and a warm cache: at a small scale everything is start-up. Each compares one
volferry line with one peer of the same leg and durability ("best": the fastest one that did the same work),
or with the link, or bounds the bytes on the wire.
"""

from dataclasses import dataclass

# What the threads backend may lose: every ratio within 20 %.
THREADS_SLACK = 0.8


@dataclass(frozen=True)
class Target:
    """`kind` is "peer" (peer's time / own time, at least `least`), "link" (share of the link's rate that the
    source's bytes reached, at least `least`) or "wire" (bytes both ways, at most `changed` times the changed
    bytes plus `extra`)."""

    workload: str
    leg: str
    contender: str = "volferry"
    kind: str = "peer"
    peer: str = "best"
    least: float = 0.0
    changed: float = 0.0
    extra: float = 0.0


def _peer(workload, leg, peer, least, contender="volferry"):
    return Target(workload, leg, contender, "peer", peer, least)


def _wire(workload, changed, extra, contender="volferry"):
    return Target(workload, "tls", contender, "wire", changed=changed, extra=extra)


ALL = [
    _peer("W1", "tls", "rsync-tls", 2.5),
    _peer("W1", "tls", "volsync-tls", 3.5),
    _peer("W1", "local", "rsync", 3.7),
    _peer("W1", "local", "cp", 1 / 1.1),
    _peer("W1", "local", "cp+sync", 1.3, "volferry-durable"),
    _peer("W2", "tls", "rsync-tls", 2.0),
    _peer("W2", "tls", "volsync-tls", 2.8),
    _peer("W2", "local", "rsync", 2.0),
    _peer("W2", "local", "best", 1.4),
    _peer("W3", "tls", "rsync-tls", 2.3),
    _peer("W3", "tls", "volsync-tls", 4.0),
    _peer("W4a", "tls", "rsync-tls", 3.0),
    _peer("W5", "tls", "rsync-tls-inplace", 5.0, "volferry-inplace"),
    _peer("W5", "tls", "rsync-tls", 3.0),
    _wire("W5", 1.2, 4e6),
    _wire("W5", 1.2, 4e6, "volferry-inplace"),
    _peer("W6", "tls", "rsync-tls", 2.5),
    _wire("W6", 0, 1e6),
    _peer("W7", "tls", "rsync-tls", 20.0),
    _peer("W7", "tls", "volsync-tls", 7.0),
    _peer("W7", "local", "cp", 1 / 1.3),
    _peer("W8a", "tls", "diskrsync-tls", 8.0),
    _peer("W8b", "tls", "diskrsync-tls", 8.0),
    # In place of blocksync-fast, which comes neither as a Debian package nor as a Go module. Where it was at
    # hand, dd took as long (0.43 s beside 0.42 s).
    _peer("W8b", "local", "dd", 1.3),
    _peer("W9", "tls", "rsync-tls", 6.0),
    _peer("W10a", "tls", "best", 1.1),
    _peer("W10b", "tls", "rsync-tls", 2.0),
    Target("W10c", "tls", kind="link", least=0.95),
    _peer("W10d", "tls", "rsync-tls", 5.0),
    _peer("W10e", "tls", "rsync-tls", 7.0),
]


def verdicts(table, facts, chosen, backend="auto", targets=ALL):
    """One dict a target that the run covers, in the order of ALL. `table` and `facts` are those of factor 1.

    Own times are those of `backend`; with another one than auto the targets are eased by THREADS_SLACK.
    """
    suffix, slack = ("", 1.0) if backend == "auto" else (f"[{backend}]", THREADS_SLACK)
    entries = {(entry["workload"], entry["leg"], entry["contender"]): entry
               for entry in table if "wall_s" in entry}
    changed = {item["workload"]: item for item in facts}
    links = {workload.key: workload.link for workload in chosen}
    found = []
    for target in targets:
        own = entries.get((target.workload, target.leg, target.contender + suffix))
        if not own:
            continue
        judge = {"peer": _judge_peer, "wire": _judge_wire, "link": _judge_link}[target.kind]
        verdict = judge(target, own, entries, changed.get(target.workload), links.get(target.workload),
                        slack)
        if verdict:
            found.append({"workload": target.workload, "leg": target.leg, "contender": own["contender"],
                          "kind": target.kind} | verdict)
    return found


def _judge_peer(target, own, entries, _facts, _link, slack):
    """None where the peer did not run."""
    peer = own.get("best_peer") if target.peer == "best" else target.peer
    entry = entries.get((target.workload, target.leg, peer))
    if not entry:
        return None
    reached, least = entry["wall_s"] / own["wall_s"], target.least * slack
    return {"peer": peer, "wanted": least, "reached": reached, "ok": reached >= least}


def _judge_wire(target, own, _entries, facts, _link, _slack):
    """None where nothing counted the bytes. Bytes do not depend on the backend: no slack."""
    if own.get("wire_up") is None:
        return None
    most, sent = target.changed * facts["changed"] + target.extra, own["wire_up"] + own["wire_down"]
    return {"peer": None, "wanted": most, "reached": sent, "ok": sent <= most}


def _judge_link(target, own, _entries, facts, link, slack):
    reached = facts["bytes"] * 8 / link.bits_per_second / own["wall_s"]
    least = target.least * slack
    return {"peer": None, "wanted": least, "reached": reached, "ok": reached >= least}


def beside_auto(table, backend):
    """How another backend's times compare with auto's: one dict a line that ran with both."""
    walls = {(entry["workload"], entry["leg"], entry["contender"]): entry["wall_s"]
             for entry in table if "wall_s" in entry and not entry["peer"]}
    found = []
    for (workload, leg, contender), wall in walls.items():
        other = walls.get((workload, leg, f"{contender}[{backend}]"))
        if other:
            found.append({"workload": workload, "leg": leg, "contender": contender, "backend": backend,
                          "auto_s": wall, "other_s": other, "ratio": wall / other,
                          "ok": wall / other >= THREADS_SLACK})
    return found
