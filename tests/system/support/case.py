# SPDX-License-Identifier: Apache-2.0
"""Base classes: a scratch folder for each test, and one set of cases run over several transports."""

import atexit
import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from . import compare, keys, program
from .relay import Relay
from .server import Server
from .sshd import HOST, Sshd

LOCAL, TLS_PUSH, TLS_PULL, SSH_PUSH, SSH_PULL = (
    "local",
    "tls_push",
    "tls_pull",
    "ssh_push",
    "ssh_pull",
)
MAIN_TRANSPORTS = (LOCAL, TLS_PUSH, TLS_PULL)
ALL_TRANSPORTS = (*MAIN_TRANSPORTS, SSH_PUSH, SSH_PULL)


def over(*transports: str):
    """Class decorator: the cases of a plain class become one TestCase for each transport."""

    def expand(cases: type) -> type:
        module = sys.modules[cases.__module__]
        for transport in transports:
            name = f"{cases.__name__}_{transport}"
            members = {
                "transport": transport,
                "__module__": cases.__module__,
                "__doc__": cases.__doc__,
            }
            setattr(module, name, type(name, (cases, TransportCase), members))
        return cases

    return expand


def remove_tree(path: str) -> None:
    """rm -rf, which also manages trees deeper than PATH_MAX."""
    subprocess.run(["rm", "-rf", "--one-file-system", path], check=False)


@functools.cache
def _shared_directory() -> str:
    directory = tempfile.mkdtemp(prefix="volferry-test-keys-")
    atexit.register(shutil.rmtree, directory, True)
    return directory


@functools.cache
def shared_psk() -> str:
    """One key file for all tests of this process that are not about keys."""
    return keys.make_psk(os.path.join(_shared_directory(), "psk"))


@functools.cache
def shared_sshd() -> Sshd:
    daemon = Sshd(os.path.join(_shared_directory(), "sshd"))
    atexit.register(daemon.close)
    return daemon


class ScratchCase(unittest.TestCase):
    """A test with a scratch folder and the usual assertions about runs and trees."""

    maxDiff = None

    def setUp(self) -> None:
        self.dir = tempfile.mkdtemp(prefix="volferry-test-")
        os.chmod(self.dir, 0o755)
        self.addCleanup(remove_tree, self.dir)
        self.src = self.path("src")
        self.dst = self.path("dst")

    def path(self, *parts: str) -> str:
        return os.path.join(self.dir, *parts)

    def volferry(self, *args, expect: int | tuple = 0, **options) -> program.Run:
        """Runs the program and checks its exit code."""
        result = program.run([str(a) if not isinstance(a, bytes) else a for a in args], **options)
        self.assert_exit(result, expect)
        return result

    def start(self, *args, **options) -> program.Process:
        """Starts the program; it is killed when the test ends."""
        process = program.Process([str(a) for a in args], **options)
        self.addCleanup(process.close)
        return process

    def serve(self, root, *options: str, auth: list[str] | None = None, **kwargs) -> Server:
        server = Server(
            root, ["--psk-file", shared_psk()] if auth is None else auth, *options, **kwargs
        )
        self.addCleanup(server.close)
        return server

    def relay(self, port: int, **options) -> Relay:
        relay = Relay(port, **options)
        self.addCleanup(relay.close)
        return relay

    def need_root(self, reason: str) -> None:
        if os.geteuid() != 0:
            self.skipTest(f"needs root: {reason}")

    def need_tool(self, name: str) -> None:
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed")

    # ---- assertions

    def assert_exit(self, result: program.Run, expect: int | tuple) -> None:
        wanted = expect if isinstance(expect, tuple) else (expect,)
        self.assertIn(result.code, wanted, f"\n{result}")

    def assert_error(self, result: program.Run, code: int | tuple, *mentions: str) -> None:
        """One line on stderr that says what, where and what to do."""
        self.assert_exit(result, code)
        lines = result.stderr.splitlines()
        self.assertEqual(1, len(lines), f"want exactly one line on stderr\n{result}")
        self.assertTrue(lines[0].startswith("volferry: error: "), f"\n{result}")
        self.assertIn("; ", lines[0], f"the line gives no hint\n{result}")
        for mention in mentions:
            self.assertIn(mention.lower(), lines[0].lower(), f"\n{result}")

    def assert_same(self, a=None, b=None, ignore=(), except_paths=()) -> None:
        found = compare.compare(a or self.src, b or self.dst, ignore, except_paths)
        shown = "\n".join(f"  {path!r}: {','.join(sorted(kinds))}" for path, kinds in found[:20])
        self.assertFalse(found, f"{len(found)} differences:\n{shown}")

    def assert_differs(self, expected: dict[str, set[str]], a=None, b=None) -> None:
        """Exactly these paths differ in exactly these kinds."""
        found = {
            path.decode(): set(kinds)
            for path, kinds in compare.compare(a or self.src, b or self.dst)
        }
        self.assertEqual(expected, found)

    def assert_no_temporaries(self, root=None) -> None:
        self.assertEqual([], compare.temporaries(root or self.dst))

    def assert_noop(self, result: program.Run) -> None:
        """A run that found everything in place."""
        self.assertEqual(0, result.summary["files_transferred"], f"\n{result}")
        self.assertEqual(0, result.summary["literal_bytes"], f"\n{result}")
        self.assertEqual(0, result.summary["files_deleted"], f"\n{result}")
        self.assertEqual([], result.items, f"\n{result}")

    def assert_named(self, result: program.Run, name: str) -> None:
        """The item is named on stderr and in the summary's errors."""
        self.assertIn(name, result.stderr, f"\n{result}")
        self.assertTrue(
            any(name in error["path"] for error in result.summary["errors"]), f"\n{result}"
        )
        for line in result.stderr.splitlines():
            self.assertRegex(line, "^volferry: (error|warning): ")


class TransportCase(ScratchCase):
    """A test whose `sync` goes over `self.transport`."""

    transport = LOCAL

    @property
    def remote(self) -> bool:
        return self.transport != LOCAL

    def endpoints(self, source, destination) -> list[str]:
        """Options and the two endpoints for this transport. Starts what has to listen."""
        source, destination = str(source), str(destination)
        if self.transport == LOCAL:
            return [source, destination]
        if self.transport.startswith("ssh"):
            options = ["-e", shared_sshd().command, "--remote-command", program.program()]
            if self.transport == SSH_PUSH:
                return [*options, source, f"{HOST}:{destination}"]
            return [*options, f"{HOST}:{source}", destination]
        options = ["--psk-file", shared_psk()]
        if self.transport == TLS_PUSH:
            return [*options, source, self._server(destination).url()]
        return [*options, self._server(source).url(), destination]

    def _server(self, root: str) -> Server:
        servers = self.__dict__.setdefault("_servers", {})
        if root not in servers or not servers[root].process.running():
            if not os.path.lexists(root):
                os.makedirs(root)
            servers[root] = self.serve(root)
        return servers[root]

    def arguments(self, *options, source=None, destination=None) -> list[str]:
        ends = self.endpoints(source or self.src, destination or self.dst)
        return ["sync", "--json", *map(str, options), *ends]

    def sync(
        self, *options, source=None, destination=None, expect: int | tuple = 0, **kwargs
    ) -> program.Run:
        """`sync --json OPTIONS`, src to dst unless said otherwise."""
        result = program.run(
            self.arguments(*options, source=source, destination=destination), **kwargs
        )
        self.assert_exit(result, expect)
        return result

    def sync_and_check(self, *options, **kwargs) -> program.Run:
        """Syncs, compares, and syncs again: the second run must find nothing to do."""
        result = self.sync(*options, **kwargs)
        self.assert_same()
        self.assert_noop(self.sync("-i", *options, **kwargs))
        self.assert_same()
        return result

    def start_sync(self, *options, source=None, destination=None, **kwargs) -> program.Process:
        return self.start(
            *self.arguments(*options, source=source, destination=destination), **kwargs
        )


def is_directory(path) -> bool:
    """Whether it is one itself, not a link to one."""
    return stat.S_ISDIR(os.lstat(path).st_mode)
