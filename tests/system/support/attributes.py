# SPDX-License-Identifier: Apache-2.0
"""POSIX ACLs and file capabilities in their kernel encoding, so that no tool needs to be
installed.
"""

import os
import struct

ACCESS = "system.posix_acl_access"
DEFAULT = "system.posix_acl_default"
CAPABILITY = "security.capability"

_TAGS = {"u": 0x01, "user": 0x02, "g": 0x04, "group": 0x08, "m": 0x10, "o": 0x20}
_NO_ID = 0xFFFFFFFF


def acl(text: str) -> bytes:
    """Encodes `u::rw-,u:33:r--,g::r--,g:5:r--,m::rw-,o::r--` (numeric ids, any order)."""
    entries = []
    for part in text.split(","):
        who, number, letters = part.split(":")
        tag = {"u": "user", "g": "group"}[who] if number else who
        perm = sum(bit for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if letter in letters)
        entries.append((_TAGS[tag], perm, int(number) if number else _NO_ID))
    entries.sort(key=lambda entry: (entry[0], entry[2]))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_acl(path, text: str, default: bool = False) -> None:
    os.setxattr(path, DEFAULT if default else ACCESS, acl(text))


def get_acl(path, default: bool = False) -> bytes | None:
    try:
        return os.getxattr(path, DEFAULT if default else ACCESS)
    except OSError:
        return None


def set_capability(path, *bits: int) -> None:
    """Permitted and effective capabilities by number (13: net_raw), revision 2."""
    mask = sum(1 << bit for bit in bits)
    value = struct.pack("<IIIII", 0x02000001, mask & 0xFFFFFFFF, 0, mask >> 32, 0)
    os.setxattr(path, CAPABILITY, value)


def get_capability(path) -> bytes | None:
    try:
        return os.getxattr(path, CAPABILITY)
    except OSError:
        return None
