# SPDX-License-Identifier: Apache-2.0
"""Seeded builders of files and trees."""

import os
import random
import socket
import stat

from . import attributes

MIB = 1 << 20
KIB = 1 << 10


def random_bytes(size: int, seed: int) -> bytes:
    source = random.Random(seed)
    return b"".join(source.randbytes(min(MIB, size - at)) for at in range(0, size, MIB))


def text_bytes(size: int, seed: int) -> bytes:
    """Log-like text that compresses about four to one."""
    source = random.Random(seed)
    words = [
        b"%s=%d" % (word, source.randrange(10**6))
        for word in (b"request", b"user", b"latency", b"status") * 64
    ]
    lines = []
    length = 0
    while length < size:
        line = b"2024-05-%02d %s\n" % (
            source.randrange(1, 29),
            b" ".join(source.choices(words, k=6)),
        )
        lines.append(line)
        length += len(line)
    return b"".join(lines)[:size]


def write(path, content: bytes = b"", mode: int | None = None, mtime_ns: int | None = None) -> None:
    """Writes a file; makes its parent directories."""
    parent = os.path.dirname(os.fsencode(path))
    os.makedirs(parent, exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(content)
    if mode is not None:
        os.chmod(path, mode)
    if mtime_ns is not None:
        set_mtime(path, mtime_ns)


def write_random(path, size: int, seed: int) -> None:
    """A file of incompressible bytes, written in pieces so that large ones need little memory."""
    source = random.Random(seed)
    os.makedirs(os.path.dirname(os.fsencode(path)), exist_ok=True)
    with open(path, "wb") as stream:
        for at in range(0, size, MIB):
            stream.write(source.randbytes(min(MIB, size - at)))


def overwrite(path, offset: int, content: bytes) -> None:
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(content)


def set_mtime(path, mtime_ns: int) -> None:
    """Sets mtime alone, of a symlink itself where `path` is one."""
    os.utime(path, ns=(0, mtime_ns), follow_symlinks=False)


def copy_mtime(source, target) -> None:
    set_mtime(target, os.lstat(source).st_mtime_ns)


def make_socket(path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        # The address has 108 bytes at most, so bind by a short relative name.
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(os.path.dirname(path))
            end.bind(os.path.basename(path))
        finally:
            os.chdir(here)
            os.close(here)


def small_tree(root, seed: int = 1, files: int = 40) -> None:
    """A few directories of small files, for tests that need any tree."""
    source = random.Random(seed)
    os.makedirs(root, exist_ok=True)
    for number in range(files):
        name = os.path.join(root, f"d{number % 5}", f"s{number % 3}", f"f{number:03d}")
        write(name, source.randbytes(source.randrange(1, 16 * KIB)))


def boundary_sizes() -> list[int]:
    """Sizes around the powers at which engines change their ways."""
    sizes = {0, 1, 511, 512, 513, 699, 700, 701}
    for power in (4 * KIB, 64 * KIB, 128 * KIB, MIB, 4 * MIB, 64 * MIB):
        sizes |= {power - 1, power, power + 1}
    return sorted(sizes)


def sparse_file(path, size: int, extents: list[tuple[int, int]], seed: int) -> None:
    """A file of `size` bytes whose only data are the (offset, length) extents."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.truncate(size)
        for index, (offset, length) in enumerate(extents):
            stream.seek(offset)
            stream.write(random_bytes(length, seed + index))


TIMES_NS = {
    "negative": -1_500_000_001,
    "y1901": -2_147_483_648 * 10**9 + 1,
    "zero": 0,
    "one-ns": 1,
    "y2038": 2_147_483_648 * 10**9 + 999_999_999,
    "y2106": 4_294_967_296 * 10**9 + 123_456_789,
    "far": 15_032_385_535 * 10**9 + 5,
}


def metadata_tree(root) -> None:
    """Everything that a sync keeps, as root, on a file system with xattrs and ACLs."""
    os.makedirs(root)

    def path(name: str) -> str:
        return os.path.join(root, name)

    write(path("empty"))
    os.mkdir(path("empty-dir"))
    write(path("plain"), b"plain\n", 0o640)
    write(path("setid/setuid"), b"#!/bin/true\n")
    os.chown(path("setid/setuid"), 1000, 1001)
    os.chmod(path("setid/setuid"), 0o6755)
    os.mkdir(path("setid/sticky"))
    os.chmod(path("setid/sticky"), 0o1777)
    os.mkdir(path("setid/setgid"))
    os.chown(path("setid/setgid"), 0, 12345)
    os.chmod(path("setid/setgid"), 0o2775)
    write(path("setid/no-mode"), b"x", 0o000)
    for name, owner in (("owned", (12345, 54321)), ("top-id", (4294967294, 4294967294))):
        write(path(name), b"owner\n")
        os.chown(path(name), *owner)

    for name, time_ns in TIMES_NS.items():
        write(path(f"times/{name}"), name.encode(), mtime_ns=time_ns)
        os.mkdir(path(f"times/dir-{name}"))
        set_mtime(path(f"times/dir-{name}"), time_ns)

    os.makedirs(path("links"))
    targets = {
        "relative": "../plain",
        "absolute": "/etc/hostname",
        "dangling": "no/such/thing",
        "arrow -> name": "a -> b",
        "up": "../../../../..",
        "long": "x" * 4095,
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "trailing": "dir/",
    }
    for number, (name, target) in enumerate(targets.items()):
        os.symlink(target, path(f"links/{name}"))
        os.chown(path(f"links/{name}"), 100 + number, 200 + number, follow_symlinks=False)
        set_mtime(path(f"links/{name}"), 10**18 + number)

    write(path("hard/a/one"), b"linked\n" * 1000)
    os.makedirs(path("hard/b"))
    os.link(path("hard/a/one"), path("hard/b/two"))
    os.link(path("hard/a/one"), path("three"))
    os.symlink("target", path("hard/symlink"))
    os.link(path("hard/symlink"), path("hard/symlink-2"), follow_symlinks=False)
    write(path("hard/unlinked"), b"linked\n" * 1000)

    os.makedirs(path("nodes"))
    os.mkfifo(path("nodes/fifo"), 0o622)
    make_socket(path("nodes/a-socket"))
    for name, kind, major, minor in (
        ("null", stat.S_IFCHR, 1, 3),
        ("whiteout", stat.S_IFCHR, 0, 0),
        ("loop", stat.S_IFBLK, 7, 200),
        ("large-minor", stat.S_IFCHR, 300, 70000),
    ):
        os.mknod(path(f"nodes/{name}"), kind | 0o660, os.makedev(major, minor))
        os.chown(path(f"nodes/{name}"), 3, 6)
    os.link(path("nodes/null"), path("nodes/null-link"))
    write(path("nodes/zz-after"), b"a socket must not end its directory\n")

    write(path("xattr/user"), b"x")
    os.setxattr(path("xattr/user"), "user.empty", b"")
    os.setxattr(path("xattr/user"), "user.binary", bytes(range(256)))
    os.setxattr(path("xattr/user"), "trusted.overlay.opaque", b"y")
    os.setxattr(path("xattr"), "user.on-directory", b"1")
    os.symlink("nowhere", path("xattr/link"))
    os.setxattr(path("xattr/link"), "trusted.on-link", b"1", follow_symlinks=False)
    write(path("xattr/capable"), b"#!/bin/true\n", 0o755)
    os.chown(path("xattr/capable"), 12, 34)
    attributes.set_capability(path("xattr/capable"), 13)

    write(path("acl/masked"), b"x", 0o664)
    attributes.set_acl(path("acl/masked"), "u::rw-,u:65534:r--,g::rw-,m::rw-,o::r--")
    write(path("acl/narrow"), b"x")
    attributes.set_acl(path("acl/narrow"), "u::rwx,u:54321:rwx,g::rwx,g:777:rw-,m::r--,o::---")
    os.mkdir(path("acl/inherit"))
    attributes.set_acl(path("acl/inherit"), "u::rwx,u:33:rwx,g::r-x,m::rwx,o::r-x", default=True)
    # Made before its parent had the default ACL, so it has none of its own, and must not inherit
    # one.
    os.mkdir(path("acl/bare"))
    write(path("acl/bare/file"), b"x", 0o600)
    os.mkdir(path("acl/bare/dir"), 0o700)
    attributes.set_acl(path("acl/bare"), "u::rwx,u:33:rwx,g::r-x,m::rwx,o::r-x", default=True)

    sparse_file(path("sparse/middle"), 8 * MIB, [(MIB, 64 * KIB), (5 * MIB, 4 * KIB)], seed=5)
    sparse_file(path("sparse/trailing-hole"), 64 * MIB, [(0, 10_000)], seed=6)
    sparse_file(path("sparse/all-hole"), 16 * MIB, [], seed=7)
    sparse_file(path("sparse/leading-hole"), 4 * MIB + 1, [(4 * MIB, 1)], seed=8)

    write(path("a/lost+found/kept"), b"a user's directory of that name below the root\n")
    write(path("deep/" + "/".join("level%d" % level for level in range(40)) + "/leaf"), b"leaf\n")
    set_mtime(root, 1_234_567_890_123_456_789)
    os.chmod(root, 0o2751)
    os.chown(root, 7, 8)
    set_mtime(root, 1_234_567_890_123_456_789)


def deep_path(root, levels: int, length: int = 200) -> int:
    """Makes `levels` nested directories of `length`-byte names; returns a descriptor of the
    innermost.
    """
    os.makedirs(root, exist_ok=True)
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for level in range(levels):
        name = (b"%03d" % level).ljust(length, b"d")
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    return here


ODD_NAMES = [
    b"new\nline",
    b"tab\there",
    b"-rf",
    b"--help",
    b"--delete",
    b"x" * 255,
    "€".encode() * 85,
    b"\xff\xfe",
    b"latin-\xe9",
    b"lone-\x80-continuation",
    b"overlong-\xc0\xaf",
    b"surrogate-\xed\xa0\x80",
    b"trailing space ",
    b" leading space",
    b"trailing dot.",
    b"...",
    b"*",
    b"?",
    b"[a]",
    b"$(id)",
    b"`id`",
    b"a\\b",
    b"back\\x0aslash",
    b"quote\"'",
    b"esc\x1b[31mred",
    b"a -> b",
    b"del\x7f",
    b"#comment",
    b"~user",
    b"host:path",
    b".volferry",
    b".volferry-short.tmp",
    b"\xc2\x85nel",
]


def odd_names_tree(root) -> None:
    os.makedirs(root)
    base = os.fsencode(root)
    for directory in (base, base + b"/nested"):
        os.makedirs(directory, exist_ok=True)
        for number, name in enumerate(ODD_NAMES):
            path = directory + b"/" + name
            if number % 3 == 0:
                os.mkdir(path)
                write(path + b"/inside", name)
            elif number % 3 == 1:
                write(path, name)
            else:
                os.symlink(name, path)


def escaped(name: bytes) -> str:
    """The program's escaping of path bytes: printable UTF-8 as it is, `\\\\`, and `\\xHH` for the
    rest.
    """
    out = []
    at = 0
    while at < len(name):
        for length in (1, 2, 3, 4):
            try:
                character = name[at : at + length].decode("utf-8")
            except UnicodeDecodeError:
                continue
            break
        else:
            character, length = "", 1
        if character == "\\":
            out.append("\\\\")
        elif not character or ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0:
            # Terminals act on the C1 controls, U+0080 to U+009F, too.
            out.extend("\\x%02x" % byte for byte in name[at : at + length])
        else:
            out.append(character)
        at += length
    return "".join(out)
