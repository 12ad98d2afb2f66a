# SPDX-License-Identifier: Apache-2.0
"""Seccomp filters that refuse io_uring as container runtimes do, or IPv6, to be set between fork
and exec.
"""

import ctypes
import errno
import platform
import socket
import struct
import unittest

_IO_URING_SETUP = 425  # the same number on every architecture
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2
# Offsets in struct seccomp_data.
_NUMBER, _FIRST_ARGUMENT = 0, 16
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
REFUSALS = {"EPERM": _ERRNO | errno.EPERM, "ENOSYS": _ERRNO | errno.ENOSYS, "kill": _KILL_PROCESS}


def refuse_io_uring(refusal: str):
    """Returns a preexec function. `refusal` is a key of REFUSALS."""
    return _filter(
        [
            (_LOAD_WORD, 0, 0, _NUMBER),
            (_JUMP_EQUAL, 0, 1, _IO_URING_SETUP),
            (_RETURN, 0, 0, REFUSALS[refusal]),
        ]
    )


def refuse_ipv6():
    """As on a machine whose kernel has no IPv6: no socket of that family."""
    return _filter(
        [
            (_LOAD_WORD, 0, 0, _NUMBER),
            (_JUMP_EQUAL, 0, 3, {"x86_64": 41, "aarch64": 198}.get(platform.machine(), 0)),  # socket(2)
            (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
            (_JUMP_EQUAL, 0, 1, socket.AF_INET6),
            (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
        ]
    )


def _filter(steps: list):
    """A preexec function that sets the steps, and allows what falls through them."""
    if platform.machine() not in ("x86_64", "aarch64"):
        raise unittest.SkipTest("the filter is written for x86_64 and aarch64")
    libc = ctypes.CDLL(None, use_errno=True)
    steps = [*steps, (_RETURN, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    filter_program = Program(len(steps), ctypes.addressof(code))

    def apply() -> None:
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
        if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filter_program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")

    apply.keep = code  # type: ignore[attr-defined]
    return apply
