# SPDX-License-Identifier: Apache-2.0
"""The independent comparator: reads two trees through directory descriptors and names every difference.

A tree becomes a dictionary from relative path (bytes) to Entry. Paths are never handed to the kernel whole, so trees
deeper than PATH_MAX work. Content is reduced to a digest of the blocks that are not all zero, with their offsets: it does
not depend on where holes are, and a sparse tebibyte costs only its data. Holes are compared by allocated size.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field

_BLOCK = 64 * 1024
_ZEROS = bytes(_BLOCK)
TEMPORARY = re.compile(rb"\.volferry-[0-9a-f]{32}\.tmp")
ALL_KINDS = frozenset(
    (
        "type",
        "size",
        "content",
        "mode",
        "owner",
        "group",
        "mtime",
        "xattr",
        "acl",
        "target",
        "hardlink",
        "rdev",
        "holes",
    )
)


@dataclass(slots=True)
class Entry:
    kind: str
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    ctime_ns: int
    size: int
    allocated: int
    inode: tuple[int, int]
    links: int
    rdev: int = 0
    target: bytes = b""
    digest: bytes = b""
    xattrs: dict = field(default_factory=dict)
    acls: dict = field(default_factory=dict)
    group: bytes = b""  # the first path of the hard-link group


_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def digest_of(descriptor: int, size: int) -> bytes:
    """A digest of the non-zero blocks of a file or device. It skips holes where the kernel knows
    them.
    """
    sha = hashlib.sha256(size.to_bytes(8, "little"))
    position = 0
    while position < size:
        try:
            data = os.lseek(descriptor, position, os.SEEK_DATA)
            end = os.lseek(descriptor, data, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == 6:  # ENXIO: only a hole follows
                break
            data, end = position, size
        block = max(position, data // _BLOCK * _BLOCK)
        while block < min(end, size):
            content = os.pread(descriptor, _BLOCK, block)
            if not content:
                break
            if content != _ZEROS[: len(content)]:
                sha.update(block.to_bytes(8, "little"))
                sha.update(content)
            block += _BLOCK
        position = block if block > position else size
    return sha.digest()


def file_digest(path) -> bytes:
    """Digest of one regular file or block device, comparable with that of another of the same
    length.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return digest_of(descriptor, os.lseek(descriptor, 0, os.SEEK_END))
    finally:
        os.close(descriptor)


def _attributes(directory: int, name: bytes) -> tuple[dict, dict]:
    path = b"/proc/self/fd/%d/%s" % (directory, name)
    xattrs, acls = {}, {}
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return xattrs, acls
    for attribute in names:
        # A security module's label is local; XFS shows root its own form of the ACLs beside the ACLs.
        if attribute == "security.selinux" or attribute.startswith("trusted.SGI_ACL_"):
            continue
        try:
            value = os.getxattr(path, attribute, follow_symlinks=False)
        except OSError:
            continue
        (acls if attribute.startswith("system.posix_acl_") else xattrs)[attribute] = value
    return xattrs, acls


def _entry(directory: int, name: bytes, content: bool) -> Entry:
    info = os.stat(name, dir_fd=directory, follow_symlinks=False)
    entry = Entry(
        kind=_KINDS[stat.S_IFMT(info.st_mode)],
        mode=stat.S_IMODE(info.st_mode),
        uid=info.st_uid,
        gid=info.st_gid,
        mtime_ns=info.st_mtime_ns,
        ctime_ns=info.st_ctime_ns,
        size=info.st_size,
        allocated=info.st_blocks * 512,
        inode=(info.st_dev, info.st_ino),
        links=info.st_nlink,
    )
    entry.xattrs, entry.acls = _attributes(directory, name)
    if entry.kind == "symlink":
        entry.target = os.readlink(name, dir_fd=directory)
    elif entry.kind.endswith("device"):
        entry.rdev = info.st_rdev
    elif entry.kind == "file" and content:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)
        try:
            entry.digest = digest_of(descriptor, info.st_size)
        finally:
            os.close(descriptor)
    return entry


def _walk(directory: int, prefix: bytes, content: bool, into: dict) -> None:
    with os.scandir(directory) as listing:
        names = sorted(os.fsencode(item.name) for item in listing)
    for name in names:
        entry = _entry(directory, name, content)
        into[prefix + name] = entry
        if entry.kind == "directory":
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            try:
                _walk(below, prefix + name + b"/", content, into)
            finally:
                os.close(below)


def snapshot(root, content: bool = True) -> dict[bytes, Entry]:
    """The tree at `root`; its own entry is under b"."."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        entries = {b".": _entry(descriptor, b".", content)}
        _walk(descriptor, b"", content, entries)
    finally:
        os.close(descriptor)
    first: dict[tuple[int, int], bytes] = {}
    for path in sorted(entries):
        entry = entries[path]
        if entry.kind != "directory":
            entry.group = first.setdefault(entry.inode, path)
    return entries


def entry_kinds(a: Entry, b: Entry) -> set[str]:
    """The kinds of difference between two entries, without hard-link groups."""
    if a.kind != b.kind:
        return {"type"}
    kinds = set()
    if a.kind == "file":
        if a.size != b.size:
            kinds.add("size")
        if a.digest != b.digest:
            kinds.add("content")
        if b.allocated > a.allocated * 1.05 + 64 * 1024:
            kinds.add("holes")
    if a.kind != "symlink" and a.mode != b.mode:
        kinds.add("mode")
    for kind, differs in (
        ("owner", a.uid != b.uid),
        ("group", a.gid != b.gid),
        ("mtime", a.mtime_ns != b.mtime_ns),
        ("xattr", a.xattrs != b.xattrs),
        ("acl", a.acls != b.acls),
        ("target", a.target != b.target),
        ("rdev", a.rdev != b.rdev),
    ):
        if differs:
            kinds.add(kind)
    return kinds


def differences(
    a: dict[bytes, Entry], b: dict[bytes, Entry], ignore=(), except_paths=()
) -> list[tuple[bytes, frozenset[str]]]:
    """(path, kinds) for each path that differs; `missing` means missing in b, `extra` only in b."""
    found = []
    for path in sorted(a.keys() | b.keys()):
        if path in except_paths:
            continue
        if path not in b:
            kinds = {"missing"}
        elif path not in a:
            kinds = {"extra"}
        else:
            kinds = entry_kinds(a[path], b[path])
            if a[path].group != b[path].group:
                kinds.add("hardlink")
        kinds -= set(ignore)
        if kinds:
            found.append((path, frozenset(kinds)))
    return found


def compare(a, b, ignore=(), except_paths=()) -> list[tuple[bytes, frozenset[str]]]:
    return differences(snapshot(a), snapshot(b), ignore, except_paths)


def frozen(entries: dict[bytes, Entry]) -> dict:
    """What must not change where nothing may be written: everything, ctime and inode numbers
    included.
    """
    return {
        path: (
            e.kind,
            e.mode,
            e.uid,
            e.gid,
            e.mtime_ns,
            e.ctime_ns,
            e.size,
            e.allocated,
            e.inode,
            e.digest,
            e.target,
        )
        for path, e in entries.items()
    }


def temporaries(root) -> list[bytes]:
    """Paths of leftover temporaries below `root`."""
    return [
        path for path in snapshot(root, content=False) if TEMPORARY.fullmatch(path.split(b"/")[-1])
    ]
