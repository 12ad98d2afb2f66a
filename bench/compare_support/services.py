# SPDX-License-Identifier: Apache-2.0
"""Far ends that contenders need: sshd, rsync daemon, stunnel. Everything is made in one directory."""

import getpass
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass

from .machine import is_root


@dataclass
class Plan:
    """What the runner is to do: servers first, then the steps in order."""

    servers: list
    steps: list


def write(path, text, mode=0o600):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "w") as out:
        out.write(text)
    return path


def stunnel_missing():
    """Why there can be no tunnel, or None."""
    return None if shutil.which("stunnel") or shutil.which("stunnel4") else "stunnel4 is not installed"


class Services:
    """Keys once, configuration files per run."""

    def __init__(self, base):
        self.base = os.path.join(base, "services")
        os.mkdir(self.base, 0o700)
        key = secrets.token_hex(32)
        self.psk_file = write(self._path("psk"), f"bench:{key}\n")
        self._ssh_ready = False

    def _path(self, name):
        return os.path.join(self.base, name)

    def sshd(self, port):
        """An sshd on loopback for the current user, and the client options that reach it."""
        if not self._ssh_ready:
            self._make_ssh_keys()
        program = shutil.which("sshd") or "/usr/sbin/sshd"
        if is_root():
            os.makedirs("/run/sshd", exist_ok=True)
        config = write(self._path("sshd_config"), f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {self._path("host_key")}
AuthorizedKeysFile {self._path("user_key.pub")}
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
LogLevel ERROR
""")
        return {"argv": [program, "-D", "-e", "-f", config], "port": port}

    def ssh_command(self, port):
        client = write(self._path("ssh_config"), f"""
Host bench
  HostName 127.0.0.1
  Port {port}
  User {getpass.getuser()}
  IdentityFile {self._path("user_key")}
  IdentitiesOnly yes
  UserKnownHostsFile /dev/null
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
  BatchMode yes
""")
        return ["ssh", "-F", client]

    def _make_ssh_keys(self):
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._path(name)],
                           check=True)
        self._ssh_ready = True

    def rsync_daemon(self, port, root):
        identity = "uid = 0\ngid = *\nuse chroot = yes\n" if is_root() else "use chroot = no\n"
        config = write(self._path("rsyncd.conf"), f"""
address = 127.0.0.1
port = {port}
reverse lookup = no
log file = {self._path("rsyncd.log")}
{identity}numeric ids = yes
munge symlinks = no
[data]
  path = {root}
  read only = no
""")
        # On SIGTERM the daemon sleeps for 0.4 s, which nobody measures.
        return {"argv": ["rsync", "--daemon", "--no-detach", f"--config={config}"], "port": port,
                "killed_idle": True}

    def stunnel_pair(self, wire_port, entry_port, far_port, behind):
        """A TLS 1.3 PSK tunnel entry_port -> wire_port = far_port -> what the lines `behind` of the
        server's configuration say. Where a link lies between, the server listens on far_port and the
        relay on wire_port."""
        common = "foreground = yes\npid =\ndebug = err\nsslVersion = TLSv1.3\n"
        server = write(self._path("stunnel-server.conf"), f"""{common}
[bench]
accept = 127.0.0.1:{far_port}
{behind}
ciphers = PSK
PSKsecrets = {self.psk_file}
""")
        client = write(self._path("stunnel-client.conf"), f"""{common}
[bench]
client = yes
accept = 127.0.0.1:{entry_port}
connect = 127.0.0.1:{wire_port}
ciphers = PSK
PSKsecrets = {self.psk_file}
PSKidentity = bench
""")
        program = shutil.which("stunnel") or "stunnel4"
        return ({"argv": [program, server], "port": far_port},
                {"argv": [program, client], "port": entry_port})
