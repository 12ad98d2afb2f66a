# SPDX-License-Identifier: Apache-2.0
"""A real sshd on loopback with a configuration, host key and user key of its own. It installs
nothing.
"""

import os
import shutil
import socket
import subprocess
import unittest

from .wait import wait_until

HOST = "volferry-test"
_SSHD = "/usr/sbin/sshd"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _keygen(path: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    with open(path + ".pub", encoding="ascii") as public:
        return public.read()


class Sshd:
    """`command` is what to give to `volferry -e`."""

    def __init__(self, directory: str):
        if not os.access(_SSHD, os.X_OK) or not shutil.which("ssh"):
            raise unittest.SkipTest("no OpenSSH server and client here")
        os.makedirs(directory, mode=0o700)
        path = lambda name: os.path.join(directory, name)
        host_key = _keygen(path("host_key"))
        user_key = _keygen(path("user_key"))
        with open(path("authorized_keys"), "w", encoding="ascii") as keys:
            keys.write(user_key)
        if os.geteuid() == 0:
            os.makedirs(
                "/run/sshd", mode=0o755, exist_ok=True
            )  # sshd insists on it for privilege separation
        self.port = free_port()
        with open(path("sshd_config"), "w", encoding="ascii") as config:
            config.write(
                f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {path('host_key')}\n"
                f"AuthorizedKeysFile {path('authorized_keys')}\nPidFile none\nStrictModes no\nUsePAM no\n"
                "PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel ERROR\n"
                "MaxStartups 100\nUseDNS no\n"
            )
        with open(path("known_hosts"), "w", encoding="ascii") as known:
            known.write(f"[127.0.0.1]:{self.port} {' '.join(host_key.split()[:2])}\n")
        self.config = path("ssh_config")
        with open(self.config, "w", encoding="ascii") as config:
            config.write(
                f"Host {HOST}\n  Port {self.port}\nHost *\n  HostName 127.0.0.1\n"
                f"  IdentityFile {path('user_key')}\n  IdentitiesOnly yes\n  UserKnownHostsFile {path('known_hosts')}\n"
                "  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n"
            )
        self.command = f"ssh -F {self.config}"
        self._log = open(path("log"), "wb")
        self._process = subprocess.Popen(
            [_SSHD, "-D", "-e", "-f", path("sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        try:
            wait_until(self._answers, "sshd to answer")
        except AssertionError:
            self.close()
            raise

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            with open(self._log.name, encoding="utf-8", errors="replace") as log:
                raise AssertionError(f"sshd ended: {log.read()}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._log.close()
