# SPDX-License-Identifier: Apache-2.0
"""Independent comparator: is one tree what the other is? Shares no code with the engine.

Compares names, types, bytes, size, mode, numeric owner, mtime in ns, link targets, device numbers,
hard-link groups and extended attributes (ACLs are among them). `ignore` names kinds that a contender
is known not to carry.
"""

import os
import stat

CHUNK = 1 << 20

# Kinds of difference: missing extra type content size mode owner mtime dirmode dirowner dirmtime rootmeta
# target rdev hardlink xattr


def differences(source, copy, ignore=frozenset(), limit=20):
    """Up to `limit` strings "KIND PATH"; an empty list means equal."""
    found = []
    groups = ({}, {})
    for kind, path in _walk(os.fsencode(source), os.fsencode(copy), b"", ignore, groups):
        if kind not in ignore:
            found.append(f"{kind} {path.decode(errors='backslashreplace')}")
            if len(found) >= limit:
                break
    return found


def _walk(a, b, relative, ignore, groups):
    names_a, names_b = set(os.listdir(a)), set(os.listdir(b))
    yield from _metadata(a, b, os.lstat(a), os.lstat(b), relative or b".", ignore)
    for name in sorted(names_a | names_b):
        path = os.path.join(relative, name)
        if name not in names_b:
            yield "missing", path
        elif name not in names_a:
            if not (not relative and name == b"lost+found"):
                yield "extra", path
        else:
            yield from _entry(os.path.join(a, name), os.path.join(b, name), path, ignore, groups)


def _entry(a, b, path, ignore, groups):
    sa, sb = os.lstat(a), os.lstat(b)
    if stat.S_IFMT(sa.st_mode) != stat.S_IFMT(sb.st_mode):
        yield "type", path
        return
    if stat.S_ISDIR(sa.st_mode):
        yield from _walk(a, b, path, ignore, groups)
        return
    yield from _metadata(a, b, sa, sb, path, ignore)
    if sa.st_nlink > 1 or sb.st_nlink > 1:
        first_a = groups[0].setdefault((sa.st_dev, sa.st_ino), path)
        first_b = groups[1].setdefault((sb.st_dev, sb.st_ino), path)
        if first_a != first_b:
            yield "hardlink", path
    if stat.S_ISREG(sa.st_mode):
        if sa.st_size != sb.st_size:
            yield "size", path
        elif not same_bytes(a, b):
            yield "content", path
    elif stat.S_ISLNK(sa.st_mode):
        if os.readlink(a) != os.readlink(b):
            yield "target", path
    elif stat.S_ISBLK(sa.st_mode) or stat.S_ISCHR(sa.st_mode):
        if sa.st_rdev != sb.st_rdev:
            yield "rdev", path


def _metadata(a, b, sa, sb, path, ignore):
    of_directory = "dir" if stat.S_ISDIR(sa.st_mode) else ""
    if path == b"." and "rootmeta" in ignore:
        return
    if not stat.S_ISLNK(sa.st_mode) and stat.S_IMODE(sa.st_mode) != stat.S_IMODE(sb.st_mode):
        yield of_directory + "mode", path
    if os.geteuid() == 0 and (sa.st_uid, sa.st_gid) != (sb.st_uid, sb.st_gid):
        yield of_directory + "owner", path
    if sa.st_mtime_ns != sb.st_mtime_ns:
        yield of_directory + "mtime", path
    if "xattr" not in ignore and _xattrs(a) != _xattrs(b):
        yield "xattr", path


def _xattrs(path):
    try:
        return {name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)}
    except OSError:
        return {}


def same_bytes(a, b):
    """Whether two files or block devices of equal size hold the same bytes; ranges that are holes in both
    are skipped."""
    fa, fb = os.open(a, os.O_RDONLY), os.open(b, os.O_RDONLY)
    try:
        size = os.lseek(fa, 0, os.SEEK_END)
        offset = 0
        while offset < size:
            start = min(_data(fa, offset, size), _data(fb, offset, size))
            if start >= size:
                return True
            offset = start - start % CHUNK
            end = min(size, max(start + 1, offset + CHUNK))
            length = end - offset
            if os.pread(fa, length, offset) != os.pread(fb, length, offset):
                return False
            offset = end
        return True
    finally:
        os.close(fa)
        os.close(fb)


def device_differences(source, copy):
    """As differences(), of two block devices. The copy may be larger: the source's size is compared."""
    if device_size(copy) < device_size(source):
        return [f"size {copy}"]
    return [] if same_bytes(source, copy) else [f"content {copy}"]


def device_size(path):
    with open(path, "rb", buffering=0) as device:
        return device.seek(0, os.SEEK_END)


def _data(fd, offset, size):
    """Offset of the next byte that is not known to be a hole."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA)
    except OSError:
        return size
