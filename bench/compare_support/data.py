# SPDX-License-Identifier: Apache-2.0
"""Seeded test data: the same seed and scale give the same bytes, names and times everywhere."""

import hashlib
import math
import os
import random
import subprocess

MIB = 1 << 20
# Times start in 2020; old versions of a file are a day older, so that no quick check by whole
# seconds can take a changed file for an unchanged one.
EPOCH_NS = 1_600_000_000 * 10**9
DAY_NS = 86_400 * 10**9


def random_block(seed, index, size=MIB):
    """Incompressible bytes, a function of seed and index only."""
    return hashlib.shake_128(f"{seed}/{index}".encode()).digest(size)


def random_file(path, size, seed):
    with open(path, "wb", buffering=0) as out:
        for index, offset in enumerate(range(0, size, MIB)):
            out.write(random_block(seed, index, min(MIB, size - offset)))


def pattern_file(path, size, unit):
    """`unit` again and again, cut at `size`."""
    block = unit * (MIB // len(unit) * 4 + 1)
    block = block[: len(block) // len(unit) * len(unit)]
    with open(path, "wb", buffering=0) as out:
        left = size
        while left > 0:
            out.write(block[:left])
            left -= min(left, len(block))


def append_range(out_fd, in_fd, offset, length):
    """Copies a range to the end of a file without taking it through this process."""
    while length > 0:
        copied = os.copy_file_range(in_fd, out_fd, length, offset)
        if copied == 0:
            raise OSError(f"unexpected end of file at {offset}")
        offset += copied
        length -= copied


def copy_with_insertions(old, new, insertions):
    """`new` is `old` with bytes put in (or, where bytes is a number, left out) at the given offsets,
    ascending: [(offset, bytes | count)]."""
    size = os.path.getsize(old)
    with open(old, "rb", buffering=0) as source, open(new, "wb", buffering=0) as out:
        position = 0
        for offset, change in insertions:
            append_range(out.fileno(), source.fileno(), position, offset - position)
            position = offset
            if isinstance(change, int):
                position += change
            else:
                out.write(change)
        append_range(out.fileno(), source.fileno(), position, size - position)


def rewrite_blocks(path, share, block, seed):
    """Rewrites a random `share` of the aligned blocks in place. Returns the bytes changed."""
    chooser = random.Random(seed)
    blocks = os.path.getsize(path) // block
    chosen = sorted(chooser.sample(range(blocks), max(1, round(blocks * share))))
    with open(path, "r+b", buffering=0) as out:
        for index in chosen:
            os.pwrite(out.fileno(), chooser.randbytes(block), index * block)
    return len(chosen) * block


def shuffled_copy(old, new, block, seed):
    """`new` has the blocks of `old` in a random order."""
    order = list(range(os.path.getsize(old) // block))
    random.Random(seed).shuffle(order)
    with open(old, "rb", buffering=0) as source, open(new, "wb", buffering=0) as out:
        for index in order:
            out.write(os.pread(source.fileno(), block, index * block))


def sparse_file(path, size, data, seed):
    """An image of `size` bytes with `data` bytes in 256 KiB extents at random places, rest holes."""
    extent = 256 << 10
    chooser = random.Random(seed)
    slots = sorted(chooser.sample(range(size // extent), max(1, data // extent)))
    with open(path, "wb", buffering=0) as out:
        os.ftruncate(out.fileno(), size)
        for index in slots:
            os.pwrite(out.fileno(), random_block(seed, index, extent), index * extent)


def small_tree(root, files, directories, seed):
    """`files` files of 1 to 16 KiB (log-uniform, as real trees are) in `directories` directories on
    two levels, with varying modes, times in ns and, as root, owners."""
    chooser = random.Random(seed)
    pool = b"".join(random_block(seed, index) for index in range(8))
    tops = max(1, round(math.sqrt(directories) / 2.4))
    paths = [f"top{index:02d}" for index in range(tops)]
    paths += [f"top{index % tops:02d}/dir{index:04d}" for index in range(directories - tops)]
    for path in paths:
        os.makedirs(os.path.join(root, path), exist_ok=True)
    for index in range(files):
        path = os.path.join(root, paths[index % len(paths)], f"file{index:06d}.dat")
        size = int(1024 * 16 ** chooser.random())
        offset = chooser.randrange(len(pool) - size)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, pool[offset:offset + size])
        _dress(fd, chooser)
        os.close(fd)
    for path in reversed(paths):
        stamp = _moment(chooser)
        os.utime(os.path.join(root, path), ns=(stamp, stamp))


def change_small_files(root, share, seed):
    """Rewrites a random share of all files with new content and size. Returns the bytes written."""
    chooser = random.Random(seed)
    paths = sorted(os.path.join(folder, name)
                   for folder, _, names in os.walk(root) for name in names)
    written = 0
    for path in chooser.sample(paths, max(1, round(len(paths) * share))):
        content = chooser.randbytes(int(1024 * 16 ** chooser.random()))
        with open(path, "wb", buffering=0) as out:
            out.write(content)
            _dress(out.fileno(), chooser, DAY_NS * 400)
        written += len(content)
    return written


def log_text(path, size, seed):
    """Lines such as a web server writes; zstd -3 brings them to about a quarter."""
    chooser = random.Random(seed)
    verbs = ["GET", "GET", "GET", "POST", "PUT", "DELETE"]
    areas = [f"/api/v1/{noun}" for noun in ("volume", "snapshot", "replica", "claim", "node")]
    with open(path, "wb") as out:
        second, written = 1_600_000_000, 0
        while written < size:
            second += chooser.randrange(3)
            line = (f"{second} 10.{chooser.randrange(256)}.{chooser.randrange(256)}."
                    f"{chooser.randrange(256)} {chooser.choice(verbs)} {chooser.choice(areas)}/"
                    f"{chooser.randrange(10**6):06d} {chooser.choice((200, 200, 200, 304, 404, 500))} "
                    f"{chooser.randrange(200, 90_000)} {chooser.random():.4f}\n").encode()
            out.write(line)
            written += len(line)
        out.truncate(size)


def system_tree(root, limit):
    """The machine's own /usr up to `limit` bytes of file content, in sorted order."""
    listed, total = [], 0
    for folder, folders, names in os.walk("/usr"):
        folders.sort()
        if folder == "/usr":
            # Programs, libraries and documents: the parts with links, small files and large ones.
            folders[:] = [name for name in ("bin", "lib", "sbin", "share") if name in folders]
        listed.append(os.path.relpath(folder, "/usr"))
        for name in sorted(names) + [n for n in folders if os.path.islink(f"{folder}/{n}")]:
            if total >= limit:
                break
            path = os.path.join(folder, name)
            info = os.lstat(path)
            total += 0 if os.path.islink(path) else info.st_size
            if os.access(path, os.R_OK, follow_symlinks=os.path.exists(path)):
                listed.append(os.path.relpath(path, "/usr"))
        if total >= limit:
            break
    pack = subprocess.Popen(["tar", "--format=posix", "-C", "/usr", "--no-recursion", "--null",
                             "-T", "-", "-cf", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(["tar", "-C", root, "-xpf", "-"], stdin=pack.stdout)
    pack.stdout.close()
    pack.stdin.write(b"\0".join(os.fsencode(path) for path in listed))
    pack.stdin.close()
    if pack.wait() != 0 or unpack.wait() != 0:
        raise RuntimeError("tar could not copy the subset of /usr")


def set_times(root, age_ns=0):
    """Gives every file and directory below (and the root) a fixed time in ns, `age_ns` in the past."""
    for index, (folder, _, names) in enumerate(os.walk(root, topdown=False)):
        for number, name in enumerate(names):
            stamp = EPOCH_NS - age_ns + index * 10**9 + number * 1_000_003
            os.utime(os.path.join(folder, name), ns=(stamp, stamp), follow_symlinks=False)
        stamp = EPOCH_NS - age_ns + index * 10**9
        os.utime(folder, ns=(stamp, stamp))


def set_root_time(root):
    """A time far from now: rsync takes directory times of the same second for equal."""
    os.utime(root, ns=(EPOCH_NS + 1, EPOCH_NS + 1))


def volume_facts(root):
    """How much a tree is: its files and directories, its bytes, and the bytes that are not holes."""
    facts = {"files": 0, "directories": 1, "bytes": 0, "data_bytes": 0}
    for folder, folders, names in os.walk(root):
        facts["directories"] += len(folders)
        facts["files"] += len(names)
        for name in names:
            info = os.lstat(os.path.join(folder, name))
            facts["bytes"] += info.st_size
            facts["data_bytes"] += min(info.st_size, info.st_blocks * 512)
    return facts


def _moment(chooser, later=0):
    return EPOCH_NS + later + chooser.randrange(10**7) * 10**9 + chooser.randrange(10**9)


def _dress(fd, chooser, later=0):
    """Owner (as root), mode and time of an open file."""
    if os.geteuid() == 0:
        os.fchown(fd, chooser.choice((0, 1000)), chooser.choice((0, 1000)))
    os.fchmod(fd, chooser.choice((0o600, 0o644, 0o644, 0o755)))
    stamp = _moment(chooser, later)
    os.utime(fd, ns=(stamp, stamp))
