# SPDX-License-Identifier: Apache-2.0
"""Makes and changes the demo's volume: demo_volume.py make|change|make-disk|change-disk PATH."""

import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bench"))

from compare_support import data  # noqa: E402

MIB = 1 << 20
FILES = 4000
SEED = "volferry-demo"


def make(root):
    """A small server's volume: many small files, a database, logs, a sparse disk image, links."""
    os.makedirs(f"{root}/files")
    data.small_tree(f"{root}/files", FILES, 80, SEED)
    os.makedirs(f"{root}/db")
    data.random_file(f"{root}/db/base.dat", 192 * MIB, SEED)
    os.makedirs(f"{root}/log")
    data.log_text(f"{root}/log/access.log", 24 * MIB, SEED)
    os.makedirs(f"{root}/images")
    data.sparse_file(f"{root}/images/disk.img", 1024 * MIB, 48 * MIB, SEED)
    os.makedirs(f"{root}/links")
    os.symlink("../db/base.dat", f"{root}/links/database")
    os.symlink("/etc/hostname", f"{root}/links/absolute")
    os.symlink("nowhere", f"{root}/links/dangling")
    os.link(f"{root}/log/access.log", f"{root}/links/second-name-of-the-log")
    os.mkfifo(f"{root}/links/fifo")
    with open(f"{root}/links/name with a\nnewline", "w", encoding="ascii") as out:
        out.write("odd names are names too\n")


def change(root):
    """One percent: blocks of the database rewritten, lines put in front of the log, some small files
    changed, removed and added. Returns the bytes of new content."""
    changed = data.rewrite_blocks(f"{root}/db/base.dat", 0.01, 4096, SEED)
    lines = b"1600000000 the newest lines stand first in this log\n" * 200
    with open(f"{root}/log/access.log", "r+b") as log:
        old = log.read()
        log.seek(0)
        log.write(lines + old)
    changed += len(lines)
    changed += data.change_small_files(f"{root}/files", 0.01, SEED)
    chooser = random.Random(SEED)
    paths = sorted(os.path.join(folder, name)
                   for folder, _, names in os.walk(f"{root}/files") for name in names)
    for path in chooser.sample(paths, 20):
        os.unlink(path)
    for index in range(20):
        with open(f"{root}/files/new{index}", "wb") as out:
            out.write(chooser.randbytes(4096))
        changed += 4096
    changed += data.rewrite_blocks(f"{root}/images/disk.img", 0.001, 4096, SEED)
    return changed


def make_disk(path):
    """Fills an existing file or block device of 256 MiB half with data."""
    with open(path, "r+b", buffering=0) as disk:
        for index in range(128):
            os.pwrite(disk.fileno(), data.random_block(SEED + "disk", index), index * 2 * MIB)
        os.fsync(disk.fileno())


def change_disk(path):
    chooser = random.Random(SEED)
    with open(path, "r+b", buffering=0) as disk:
        size = os.lseek(disk.fileno(), 0, os.SEEK_END)
        blocks = sorted(chooser.sample(range(size // 4096), size // 4096 // 100))
        for index in blocks:
            os.pwrite(disk.fileno(), chooser.randbytes(4096), index * 4096)
        os.fsync(disk.fileno())
    return len(blocks) * 4096


def main():
    action, path = sys.argv[1:]
    result = {"make": make, "change": change, "make-disk": make_disk,
              "change-disk": change_disk}[action](path)
    if result is not None:
        print(result)


if __name__ == "__main__":
    main()
