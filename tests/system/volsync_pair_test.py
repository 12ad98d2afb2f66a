# SPDX-License-Identifier: Apache-2.0
"""The drop-in for VolSync's rsync-tls mover: what its Job and its users rely on."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import time

from support import blockdev, seccomp, trees
from support.mover import free_port
from support.volsync import KEPT, KEPT_OF_FAILURES, VolsyncCase
from support.wait import wait_until

MIB = trees.MIB


class Pair(VolsyncCase):
    def kept(self, run) -> list[str]:
        """What ends up in `status.latestMoverStatus.logs`: of the last 1024 bytes."""
        log = (run.stderr + run.stdout.decode()).encode()[-1024:].decode()
        return [line for line in log.splitlines() if KEPT.search(line)]

    def test_last_lines_are_those_that_the_operator_keeps(self):
        trees.small_tree(self.src)
        for run in self.sync():
            self.assertRegex(
                "\n".join(self.kept(run)),
                r"sent \d+ bytes  received \d+ bytes  [\d.]+ bytes/sec\n"
                r"total size is \d+  speedup is [\d.]+\n"
                r"rsync completed in \d+s$",
            )
            self.assertTrue(run.stdout.decode().rstrip().splitlines()[-1].startswith("rsync completed in"))
            self.assertFalse([line for line in run.stderr.splitlines() if KEPT_OF_FAILURES.search(line)])
        self.assert_same(except_paths=(b".",))

    def test_image_and_its_last_line(self):
        trees.write_random(self.path("one.img"), 8 * MIB, seed=1)
        trees.write(self.path("two.img"), b"\0" * 8 * MIB)
        for run in self.sync(self.path("one.img"), self.path("two.img")):
            self.assertRegex(run.stdout.decode(), r"\ndiskrsync completed in \d+s\n$")

    def test_larger_device_keeps_its_size_and_both_ends_end(self):
        one = blockdev.loop_of_size(self, self.path("one.img"), 8 * MIB)
        two = blockdev.loop_of_size(self, self.path("two.img"), 12 * MIB)
        trees.overwrite(one, 5 * MIB, os.urandom(MIB))
        self.sync(one, two)
        with open(one, "rb") as a, open(two, "rb") as b:
            self.assertEqual(a.read(), b.read(8 * MIB))

    def test_smaller_device_fails_at_both_ends_before_anything_is_sent(self):
        one = blockdev.loop_of_size(self, self.path("one.img"), 12 * MIB)
        two = blockdev.loop_of_size(self, self.path("two.img"), 8 * MIB)
        far = self.server(two)
        for run in (self.end(self.client(far.port, one), 23), self.end(far, 23)):
            self.assertTrue(KEPT_OF_FAILURES.search(run.stderr.splitlines()[-1]), f"\n{run}")

    def test_lost_found_is_left_out_at_the_root_only(self):
        trees.write(os.path.join(self.src, "lost+found", "ours"), b"source")
        trees.write(os.path.join(self.src, "deep", "lost+found", "file"), b"a user's")
        trees.write(os.path.join(self.dst, "lost+found", "theirs"), b"destination")
        self.sync()
        self.assertEqual(["theirs"], os.listdir(os.path.join(self.dst, "lost+found")))
        self.assertEqual(["file"], os.listdir(os.path.join(self.dst, "deep", "lost+found")))

    def test_empty_source_deletes_all_but_lost_found(self):
        trees.small_tree(os.path.join(self.dst, "old"))
        trees.write(os.path.join(self.dst, "lost+found", "theirs"), b"kept")
        self.sync()
        self.assertEqual(["lost+found"], os.listdir(self.dst))
        self.assertEqual(["theirs"], os.listdir(os.path.join(self.dst, "lost+found")))

    def test_other_file_systems_are_not_entered(self):
        trees.write(os.path.join(self.src, "file"), b"here")
        inner = os.path.join(self.src, "mounted")
        os.mkdir(inner)
        blockdev.mount_tmpfs(self, inner, "4m")
        trees.write(os.path.join(inner, "elsewhere"), b"there")
        self.sync()
        self.assertEqual([], os.listdir(os.path.join(self.dst, "mounted")))

    def test_only_a_privileged_mover_changes_the_root(self):
        trees.write(os.path.join(self.src, "file"), b"x")
        os.chmod(self.src, 0o2750)
        os.chmod(self.dst, 0o2775)
        before = os.stat(self.dst)
        self.sync()
        after = os.stat(self.dst)
        self.assertEqual((before.st_mode, before.st_uid, before.st_gid), (after.st_mode, after.st_uid, after.st_gid))
        self.sync(PRIVILEGED_MOVER="1")
        self.assertEqual(0o2750, stat.S_IMODE(os.stat(self.dst).st_mode))

    def test_names_that_the_scripts_stumbled_over(self):
        for name in ("#first", ".hidden", "new\nline", "a -> b", "with space", "-dash"):
            trees.write(os.path.join(self.src, name), name.encode())
        os.symlink("/absolute/out of here", os.path.join(self.src, "link -> x"))
        os.link(os.path.join(self.src, "link -> x"), os.path.join(self.src, "twin"), follow_symlinks=False)
        os.symlink("../up", os.path.join(self.src, "up"))
        self.sync()
        self.assert_same(except_paths=(b".",))
        before = {name: os.lstat(os.path.join(self.dst, name)).st_ctime_ns for name in os.listdir(self.dst)}
        self.sync()
        after = {name: os.lstat(os.path.join(self.dst, name)).st_ctime_ns for name in os.listdir(self.dst)}
        self.assertEqual(before, after, "a second sync touched what had not changed")

    def test_security_labels_stay_what_each_end_made_them(self):
        self.need_root("security.selinux")
        ours, theirs = os.path.join(self.src, "file"), os.path.join(self.dst, "file")
        trees.write(ours, b"same")
        self.sync()
        os.setxattr(ours, b"security.selinux", b"source_t")
        os.setxattr(theirs, b"security.selinux", b"destination_t")
        os.chmod(ours, 0o600)
        os.setxattr(ours, b"user.note", b"changed")
        self.sync()
        self.assertEqual(b"destination_t", os.getxattr(theirs, b"security.selinux"))
        self.assertEqual(b"changed", os.getxattr(theirs, b"user.note"))

    def test_capabilities_are_left_out_where_they_cannot_be_set(self):
        """VolSync gives its movers no CAP_SETFCAP; with it they are carried."""
        self.need_root("security.capability")
        self.need_tool("setpriv")
        ours, theirs = os.path.join(self.src, "ping"), os.path.join(self.dst, "ping")
        trees.write(ours, b"program")
        capability = bytes.fromhex("0100000200200000000000000000000000000000")
        os.setxattr(ours, b"security.capability", capability)
        os.setxattr(ours, b"user.note", b"kept")
        for _ in range(2):
            far = self.server(prefix=["setpriv", "--bounding-set=-setfcap"], PRIVILEGED_MOVER=1)
            self.end(self.client(far.port, PRIVILEGED_MOVER=1))
            self.assertIn("file capabilities are left out", self.end(far).stderr)
            self.assertEqual(["user.note"], os.listxattr(theirs))
            self.assertEqual(b"kept", os.getxattr(theirs, b"user.note"))
        self.sync(PRIVILEGED_MOVER=1)
        self.assertEqual(capability, os.getxattr(theirs, b"security.capability"))

    def test_many_long_names_in_the_root(self):
        for number in range(21_000):
            trees.write(os.path.join(self.src, f"{number:05}-{'long' * 40}"))
        self.sync()
        self.assertEqual(sorted(os.listdir(self.src)), sorted(os.listdir(self.dst)))

    def test_only_the_volume_is_flushed(self):
        """Not the whole node, by sync(2)."""
        self.need_tool("strace")
        trees.small_tree(self.src)
        trace = self.path("trace")
        far = self.server(prefix=["strace", "-f", "-qq", "-e", "trace=sync,syncfs,fsync,fdatasync", "-o", trace])
        self.end(self.client(far.port))
        self.end(far)
        with open(trace, encoding="utf-8") as stream:
            calls = stream.read()
        self.assertNotRegex(calls, r"\bsync\(")
        self.assertRegex(calls, r"\b(syncfs|fsync|fdatasync)\(")

    def test_server_waits_until_everything_has_arrived(self):
        """A file that cannot be read holds both ends up, and nothing else."""
        self.need_root("the source has to be another user")
        trees.small_tree(self.src)
        closed = os.path.join(self.src, "closed")
        trees.write(closed, b"secret", mode=0o600)
        os.chmod(self.keys, 0o755)
        os.chown(os.path.join(self.keys, "psk.txt"), 1234, 1234)
        far = self.server(VOLFERRY_KEYS=self._own_keys())
        near = self.client(far.port, options={"user": 1234})
        wait_until(lambda: "once more in 2 s" in near.stderr_text(), "the first try")
        self.assertTrue(far.running())
        os.chmod(closed, 0o644)
        self.assertIn("closed", self.end(near).stderr)
        self.end(far)
        self.assert_same(except_paths=(b".",))

    def _own_keys(self) -> str:
        folder = self.path("own-keys")
        shutil.copytree(self.keys, folder)
        os.chown(os.path.join(folder, "psk.txt"), 0, 0)
        return folder

    def test_wrong_key_is_not_tried_again(self):
        far = self.server()
        wrong = self.path("wrong")
        os.mkdir(wrong, 0o700)
        trees.write(os.path.join(wrong, "psk.txt"), f"volsync:{'ab' * 64}\n".encode(), mode=0o600)
        run = self.end(self.client(far.port, VOLFERRY_KEYS=wrong), 11, timeout=20)
        self.assertTrue(KEPT_OF_FAILURES.search(run.stderr.splitlines()[-1]), f"\n{run}")
        self.assertTrue(far.running())

    def test_client_waits_for_a_server_that_comes_later(self):
        trees.small_tree(self.src)
        far = self.server()
        port = far.port
        far.send(signal.SIGTERM)
        far.wait()
        near = self.client(port)
        wait_until(lambda: "trying again" in near.stderr_text(), "the first refusal")
        far = self.server(VOLFERRY_LISTEN=f"127.0.0.1:{port}")
        self.end(near)
        self.end(far)
        self.assert_same(except_paths=(b".",))

    def test_machine_without_ipv6(self):
        trees.small_tree(self.src)
        far = self.server(preexec=seccomp.refuse_ipv6(), VOLFERRY_LISTEN="[::]:0")
        self.assertIn(b"listening on 0.0.0.0:", far.stdout_bytes())
        self.end(self.client(far.port))
        self.end(far)

    def test_missing_address(self):
        run = self.end(self.client(DESTINATION_ADDRESS=""), 2)
        self.assertIn("error: DESTINATION_ADDRESS: not set", run.stderr)

    def test_sigterm_ends_a_waiting_server(self):
        far = self.server()
        far.send(signal.SIGTERM)
        self.end(far, 143, timeout=10)


class Strangers(VolsyncCase):
    """One end is still VolSync's own: its key fits, and then it speaks something else."""

    def openssl(self, *words: str, say: bytes) -> subprocess.Popen:
        self.need_tool("openssl")
        end = subprocess.Popen(
            ["openssl", *words, "-psk", self.key, "-tls1_3", "-quiet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(end.wait)
        self.addCleanup(end.kill)
        self.addCleanup(end.stdin.close)
        end.stdin.write(say)
        end.stdin.flush()
        return end

    def assert_named(self, run, program: str):
        last = run.stderr.splitlines()[-1]
        self.assertIn(f"the peer speaks {program} and", last)
        self.assertIn("VolSync's own mover", last)
        self.assertTrue(KEPT_OF_FAILURES.search(last))

    def test_server_ends_at_a_stock_client(self):
        for greeting, program in ((b"@RSYNCD: 31.0 sha512 sha256\n", "rsync"), (b"BSNC0002" + bytes(8), "diskrsync")):
            far = self.server()
            self.openssl(
                "s_client", "-connect", f"127.0.0.1:{far.port}", "-psk_identity", "volsync", say=greeting
            )
            self.assert_named(self.end(far, 12, timeout=20), program)
        self.assertEqual([], os.listdir(self.dst))

    def test_client_ends_at_a_stock_server(self):
        port = free_port()
        self.openssl(
            "s_server", "-accept", str(port), "-nocert", "-psk_identity", "volsync", say=b"@RSYNCD: 31.0 sha512 sha256\n"
        )
        self.assert_named(self.end(self.client(port), 12, timeout=30), "rsync")

    def test_client_says_what_a_silent_server_may_be(self):
        """VolSync's target for devices says nothing before it is spoken to, and hangs up on us."""
        port = free_port()
        server = self.openssl("s_server", "-accept", str(port), "-nocert", "-psk_identity", "volsync", say=b"")
        near = self.client(port)
        wait_until(lambda: self.connected(port), "a connection")
        time.sleep(1)  # for its handshake
        server.kill()
        wait_until(lambda: "such as VolSync's own mover" in near.stderr_text(), "the hint")
        near.send(signal.SIGTERM)
        self.end(near, 143)

    def connected(self, port: int) -> bool:
        seen = subprocess.run(["ss", "-Htn", "state", "established", f"( dport = :{port} )"], capture_output=True)
        return bool(seen.stdout)

    def test_port_scanner_does_not_end_the_server(self):
        far = self.server()
        with socket.create_connection(("127.0.0.1", far.port)) as end:
            end.sendall(b"@RSYNCD: 31.0 sha512 sha256\n")
            end.recv(100)
        trees.small_tree(self.src)
        self.end(self.client(far.port))
        self.end(far)


class Debugging(VolsyncCase):
    def test_pod_waits_until_the_file_is_removed(self):
        file = "/tmp/exit-debug-if-removed"
        near = self.client(DEBUG_MOVER="1")
        wait_until(lambda: b"rm /tmp/exit-debug-if-removed" in near.stdout_bytes(), "the words")
        self.assertTrue(near.running())
        os.unlink(file)
        self.end(near, 0, timeout=10)
