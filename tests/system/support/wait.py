# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition, with a deadline."""

import threading
import fcntl
import os
import time


def wait_until(condition, what: str, timeout: float = 30.0) -> None:
    """Polls `condition` until it holds; fails with `what` after `timeout` seconds."""
    pause = threading.Event()
    deadline = time.monotonic() + timeout

    def holds() -> bool:
        try:
            return condition()
        except FileNotFoundError:  # what is looked at may be renamed at any moment
            return False

    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for: {what}")
        pause.wait(0.002)


def locked(root: str) -> bool:
    """Whether a volferry is writing the volume."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
