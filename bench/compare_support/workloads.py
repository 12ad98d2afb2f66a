# SPDX-License-Identifier: Apache-2.0
"""What is moved. A workload builds `new` (the source) and, where the destination holds something
already, `old`; every contender starts from a fresh copy of `old`."""

import os
import subprocess
from dataclasses import dataclass, field
from typing import Callable

from . import data
from .links import Link

GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10
SEED = "volferry-compare-1"


@dataclass(frozen=True)
class Workload:
    """`build(new, old, scale)` fills both directories and returns the bytes that differ.

    `space(scale)` is the bytes one copy may take on disk. `traits` tell contenders what applies:
    full (the destination is empty), delta (a file changes inside), same (nothing changed),
    some (whole files change), sparse (holes), links, text (compresses well), device (the one file that
    `build` writes becomes the content of a block device at each end). `beside` names the workload whose
    time this one must not exceed by more than `factor`.
    """

    key: str
    name: str
    title: str
    build: Callable[[str, str, float], int]
    space: Callable[[float], int]
    traits: frozenset
    beside: str | None = None
    factor: float = 3.0
    legs: frozenset = frozenset({"local", "ssh", "tls"})
    link: Link | None = None
    default: bool = True
    tags: frozenset = field(default=frozenset())


def blocks(size, block=4096):
    """`size` rounded down to whole blocks, at least 64 of them."""
    return max(64, int(size) // block) * block


def large(new, _old, scale):
    size = blocks(GIB * scale)
    data.random_file(f"{new}/volume.img", size, SEED)
    data.set_times(new)
    return size


def small(new, _old, scale):
    data.small_tree(new, max(50, round(25_000 * scale)), max(9, round(459 * scale)), SEED)
    data.set_root_time(new)
    return _tree_bytes(new)


def tree(new, _old, scale):
    data.system_tree(new, int(800 * MIB * scale))
    data.set_root_time(new)
    return _tree_bytes(new)


def no_change(new, old, scale):
    small(new, old, scale)
    _clone(new, old)
    return 0


def tree_no_change(new, old, scale):
    tree(new, old, scale)
    _clone(new, old)
    return 0


def some_changed(new, old, scale):
    small(new, old, scale)
    _clone(new, old)
    return data.change_small_files(new, 0.01, SEED + "changed")


def rewritten(new, old, scale):
    size = blocks(GIB * scale)
    data.random_file(f"{old}/volume.img", size, SEED)
    subprocess.run(["cp", f"{old}/volume.img", f"{new}/volume.img"], check=True)
    changed = data.rewrite_blocks(f"{new}/volume.img", 0.01, 4096, SEED)
    _stamp_pair(new, old)
    return changed


def inserted(new, old, scale):
    data.random_file(f"{old}/volume.img", blocks(GIB * scale), SEED)
    data.copy_with_insertions(f"{old}/volume.img", f"{new}/volume.img",
                              [(0, data.random_block(SEED, -1, KIB))])
    _stamp_pair(new, old)
    return KIB


def sparse(new, _old, scale):
    data.sparse_file(f"{new}/disk.img", blocks(4 * GIB * scale, MIB), int(256 * MIB * scale), SEED)
    data.set_times(new)
    return int(256 * MIB * scale)


def huge_sparse(new, _old, scale):
    data.sparse_file(f"{new}/disk.img", blocks(16 * GIB * scale, MIB), int(GIB * scale), SEED)
    data.set_times(new)
    return int(GIB * scale)


def device_full(new, old, scale):
    size = large(new, old, scale)
    with open(f"{old}/volume.img", "wb") as zeros:
        zeros.truncate(size)
    return size


def equal_bytes(new, old, scale):
    """Every block equals every other; 1000 other bytes in the middle shift the second half."""
    size = blocks(GIB * scale)
    data.pattern_file(f"{old}/volume.img", size, b"\xa5")
    data.copy_with_insertions(f"{old}/volume.img", f"{new}/volume.img",
                              [(size // 2, data.random_block(SEED, -2, 1000))])
    _stamp_pair(new, old)
    return 1000


def periodic(new, old, scale):
    """Period 700: no block size divides it, and the start moves by 100 bytes."""
    data.pattern_file(f"{old}/volume.img", blocks(GIB * scale), data.random_block(SEED, -3, 700))
    data.copy_with_insertions(f"{old}/volume.img", f"{new}/volume.img", [(0, 100)])
    _stamp_pair(new, old)
    return 100


def shuffled(new, old, scale):
    """The same 64 KiB blocks in another order: every one matches, none where it was."""
    data.random_file(f"{old}/volume.img", blocks(GIB * scale, 64 * KIB), SEED)
    data.shuffled_copy(f"{old}/volume.img", f"{new}/volume.img", 64 * KIB, SEED)
    _stamp_pair(new, old)
    return 0


def unrelated(new, old, scale):
    """The yardstick of the degenerate ones: random data beside other random data of that size."""
    size = blocks(GIB * scale)
    data.random_file(f"{old}/volume.img", size, SEED)
    data.random_file(f"{new}/volume.img", size, SEED + "other")
    _stamp_pair(new, old)
    return size


def logs(new, _old, scale):
    size = blocks(128 * MIB * scale)
    data.log_text(f"{new}/access.log", size, SEED)
    data.set_times(new)
    return size


def fewer_small(new, old, scale):
    return small(new, old, scale * 0.2)


def quarter_large(new, old, scale):
    return large(new, old, scale * 0.25)


def _clone(source, destination):
    subprocess.run(["cp", "-a", f"{source}/.", destination], check=True)


def _stamp_pair(new, old):
    data.set_times(new)
    data.set_times(old, data.DAY_NS)


def _tree_bytes(root):
    return sum(os.lstat(os.path.join(folder, name)).st_size
               for folder, _, names in os.walk(root) for name in names)


def _bytes(size):
    return lambda scale: int(size * scale)


FULL, DELTA, SAME, SOME, SPARSE, LINKS, TEXT, DEVICE = (
    frozenset({name})
    for name in ("full", "delta", "same", "some", "sparse", "links", "text", "device"))
OWN = frozenset({"local", "tls"})
TLS = frozenset({"tls"})
SMALL_SPACE = _bytes(240 * MIB)

ALL = [
    Workload("W1", "large", "one incompressible file, 1 GiB", large, _bytes(GIB), FULL),
    Workload("W2", "small", "25,000 files of 1-16 KiB in 459 directories", small, SMALL_SPACE, FULL),
    Workload("W3", "tree", "0.8 GB of /usr", tree, _bytes(1200 * MIB), FULL | LINKS),
    Workload("W4a", "same", "25,000 small files, none changed", no_change, SMALL_SPACE, SAME),
    Workload("W4b", "same-tree", "0.8 GB of /usr, nothing changed", tree_no_change, _bytes(1200 * MIB),
             SAME | LINKS),
    Workload("W5", "rewritten", "1 % of 4 KiB blocks rewritten in 1 GiB", rewritten, _bytes(GIB), DELTA),
    Workload("W6", "inserted", "1 KiB inserted in front of 1 GiB", inserted, _bytes(GIB), DELTA),
    Workload("W7", "sparse", "4 GiB image with 256 MiB of data", sparse, _bytes(GIB),
             FULL | SPARSE),
    Workload("W7b", "huge-sparse", "16 GiB image with 1 GiB of data", huge_sparse, _bytes(2 * GIB),
             FULL | SPARSE, default=False),
    Workload("W8a", "device", "block device, 1 GiB onto zeros", device_full, _bytes(GIB),
             FULL | DEVICE, legs=OWN),
    Workload("W8b", "device-delta", "block device, 1 % of 1 GiB changed", rewritten,
             _bytes(GIB), DELTA | DEVICE, legs=OWN),
    Workload("W9", "some", "25,000 small files, 1 % of them changed", some_changed, SMALL_SPACE, SOME),
    Workload("D0", "unrelated", "random 1 GiB over other random data", unrelated, _bytes(GIB),
             DELTA, legs=OWN, tags=frozenset({"own"})),
    Workload("D1", "equal", "all bytes equal, 1000 put in", equal_bytes, _bytes(GIB), DELTA,
             beside="D0", legs=OWN, tags=frozenset({"own"})),
    Workload("D2", "periodic", "period 700, shifted by 100", periodic, _bytes(GIB), DELTA,
             beside="D0", legs=OWN, tags=frozenset({"own"})),
    Workload("D3", "shuffled", "64 KiB blocks in another order", shuffled, _bytes(GIB), DELTA,
             beside="D0", legs=OWN, tags=frozenset({"own"})),
    Workload("W10a", "logs-slow", "128 MiB of logs, 100 Mbit/s, 20 ms", logs, _bytes(128 * MIB),
             FULL | TEXT, legs=TLS, link=Link(100e6, 0.020), default=False),
    Workload("W10b", "small-far", "5,000 small files, 1 Gbit/s, 50 ms", fewer_small,
             SMALL_SPACE, FULL, legs=TLS, link=Link(1e9, 0.050), default=False),
    Workload("W10c", "large-far", "256 MiB, 1 Gbit/s, 50 ms", quarter_large, _bytes(GIB), FULL,
             legs=TLS, link=Link(1e9, 0.050), default=False),
    Workload("W10d", "rewritten-slow", "1 % of 1 GiB rewritten, 100 Mbit/s, 20 ms", rewritten,
             _bytes(GIB), DELTA, legs=TLS, link=Link(100e6, 0.020), default=False),
    Workload("W10e", "same-far", "25,000 files, none changed, 1 Gbit/s, 50 ms", no_change, SMALL_SPACE, SAME,
             legs=TLS, link=Link(1e9, 0.050), default=False),
]


def choose(text):
    """Workloads for a comma list of keys or names; "default" and "all" are understood."""
    if text in (None, "", "default"):
        return [workload for workload in ALL if workload.default]
    if text == "all":
        return list(ALL)
    known = {name.lower(): workload for workload in ALL for name in (workload.key, workload.name)}
    chosen = []
    for word in text.split(","):
        workload = known.get(word.strip().lower())
        if workload is None:
            raise ValueError(f"unknown workload '{word.strip()}'; known: " +
                             ", ".join(f"{item.key} ({item.name})" for item in ALL))
        chosen.append(workload)
    needed = {workload.beside for workload in chosen if workload.beside}
    present = {workload.key for workload in chosen}
    return [item for item in ALL if item.key in needed - present] + chosen
