# SPDX-License-Identifier: Apache-2.0
"""Rounds of kill -9 at random moments and what has to hold after each."""

import os
import random
import signal
import subprocess

from . import compare, program, trees
from .wait import locked, wait_until


def build(root: str, version: int) -> None:
    """A tree whose every file differs between versions; some files exist in one version only."""
    for number in range(150):
        trees.write(
            os.path.join(root, f"d{number % 7}/f{number}"),
            trees.random_bytes(3000 + number, version * 1000 + number),
        )
    for number in range(4):
        trees.write_random(
            os.path.join(root, f"large/{number}"), 5 << 20, seed=version * 10 + number
        )
    trees.write(os.path.join(root, f"only-{version}/file"), b"version %d" % version)
    os.makedirs(os.path.join(root, "links"), exist_ok=True)
    for number in range(20):
        os.symlink(f"target of version {version}", os.path.join(root, f"links/l{number}"))
    os.link(os.path.join(root, "d0/f0"), os.path.join(root, "links/hard"))


class KillRounds:
    """For use with `over`: `kill_rounds` alternates between two versions of a source."""

    def kill_rounds(self, rounds: int, seed: int) -> None:
        chance = random.Random(seed)
        print(f"{self.id()}: seed {seed}")
        versions = [self.path("v0"), self.path("v1")]
        for version, root in enumerate(versions):
            build(root, version)
        snapshots = [compare.snapshot(root) for root in versions]
        self.src = self.path("source")
        self._show(versions[0])
        whole = self.sync("--delete", "--no-durable").elapsed_s
        for number in range(rounds):
            wanted = (number + 1) % 2
            self._show(versions[wanted])
            arguments = self.arguments("--delete", "--no-durable", "--retries", "0")
            victim = client = self.start(*arguments)
            server = self._running_server()
            if server is not None and number % 2:
                victim = server
            try:
                client.popen.wait(chance.uniform(0.0, whole * 1.2))
            except subprocess.TimeoutExpired:
                pass
            if victim.running():
                victim.send(signal.SIGKILL)
            victim.popen.wait()
            if victim is not client:
                client.wait(60)
            wait_until(lambda: not locked(self.dst), "the other end to let go of the destination", 60)
            self._check_old_or_new(snapshots, f"round {number}, seed {seed}")
            if server is not None:
                server.close()  # what serves the next run is a new process
            self._finish(f"round {number}, seed {seed}")

    def _show(self, version: str) -> None:
        """Makes `version` the content of the source path, which stays the same directory name for
        a server.
        """
        if os.path.lexists(self.src):
            subprocess.run(["rm", "-rf", self.src], check=True)
        subprocess.run(["cp", "-a", version, self.src], check=True)

    def _running_server(self) -> program.Process | None:
        servers = list(self.__dict__.get("_servers", {}).values())
        return servers[-1].process if servers else None

    def _check_old_or_new(self, snapshots: list, where: str) -> None:
        for path, entry in compare.snapshot(self.dst).items():
            if compare.TEMPORARY.fullmatch(path.split(b"/")[-1]):
                continue
            candidates = [tree[path] for tree in snapshots if path in tree]
            self.assertTrue(candidates, f"{where}: {path!r} belongs to no version")
            if entry.kind == "file":
                self.assertIn(
                    entry.digest,
                    [c.digest for c in candidates],
                    f"{where}: {path!r} is half-written",
                )
            elif entry.kind == "symlink":
                self.assertIn(entry.target, [c.target for c in candidates], f"{where}: {path!r}")

    def _finish(self, where: str) -> None:
        result = self.sync("--delete", "--no-durable")
        self.assertEqual("ok", result.summary["result"], where)
        self.assert_same()
        self.assert_no_temporaries()
