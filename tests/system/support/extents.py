# SPDX-License-Identifier: Apache-2.0
"""The kernel's map of a file's extents (FS_IOC_FIEMAP)."""

import fcntl
import os
import struct

_FS_IOC_FIEMAP = 0xC020660B
_FLAG_SYNC = 1
_EXTENT_LAST = 0x1
_EXTENT_SHARED = 0x2000
_HEADER = struct.Struct("<QQIIII")
_EXTENT = struct.Struct("<QQQQQIIII")
_COUNT = 512


def extents(path) -> list[tuple[int, int, int]]:
    """(offset, length, flags) of each extent."""
    found = []
    start = 0
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while True:
            buffer = bytearray(_HEADER.size + _COUNT * _EXTENT.size)
            _HEADER.pack_into(buffer, 0, start, (1 << 64) - 1 - start, _FLAG_SYNC, 0, _COUNT, 0)
            fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, buffer)
            mapped = _HEADER.unpack_from(buffer)[3]
            for index in range(mapped):
                logical, _, length, _, _, flags, *_ = _EXTENT.unpack_from(
                    buffer, _HEADER.size + index * _EXTENT.size
                )
                found.append((logical, length, flags))
            if mapped == 0 or found[-1][2] & _EXTENT_LAST:
                return found
            start = found[-1][0] + found[-1][1]
    finally:
        os.close(descriptor)


def shared_bytes(path) -> int:
    """How many bytes of the file lie in extents that another file or offset uses too."""
    return sum(length for _, length, flags in extents(path) if flags & _EXTENT_SHARED)
