# SPDX-License-Identifier: Apache-2.0
"""What the checks share: the files git knows, and how a finding is reported."""

import os
import subprocess
import sys


def files(*patterns):
    """Paths from the root that are tracked and present; the working directory becomes the root."""
    root = subprocess.run(["git", "rev-parse", "--show-toplevel"], check=True, capture_output=True,
                          text=True).stdout.strip()
    os.chdir(root)
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], check=True,
                            capture_output=True).stdout.decode()
    return [path for path in listed.split("\0") if path and os.path.isfile(path)]


def lines(path):
    """(number, text) of a text file; nothing for a binary one."""
    with open(path, "rb") as source:
        content = source.read()
    if b"\0" in content:
        return []
    return list(enumerate(content.decode(errors="replace").splitlines(), 1))


def finish(findings):
    """Prints `file:line: what` for each finding and ends the program."""
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
