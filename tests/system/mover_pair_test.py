# SPDX-License-Identifier: Apache-2.0
"""Two movers over TLS on loopback: a tree, an image, devices; what the results say."""

import fcntl
import os

from support import blockdev, trees
from support.mover import MoverCase, free_port, make_keys
from support.wait import wait_until

MIB = trees.MIB


class Pair(MoverCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.dst)

    def test_tree_and_a_second_smaller_transfer(self):
        trees.small_tree(self.src)
        trees.write_random(os.path.join(self.src, "large"), 8 * MIB, seed=1)
        near, far = self.transfer(SEQ=4, ATTEMPT="a-1", FINAL_SYNC_ID="r1", EPOCH="3-f00d")
        self.assert_same()
        for run in (near, far):
            self.assertEqual("ok", run.result["result"])
            self.assertEqual("", run.result["message"])
            self.assertEqual(41, run.result["files_total"])
            self.assertEqual((4, "a-1", "r1"), tuple(run.result[f] for f in ("seq", "attempt", "final_sync_id")))
        self.assertEqual("3-f00d", far.result["peer"]["epoch"])
        self.assertEqual(4, far.result["peer"]["seq"])
        self.assertEqual("Filesystem", near.result["peer"]["volume_mode"])
        self.assertGreater(near.result["wire_sent"], 8 * MIB)
        # Two blocks change; a file goes.
        trees.overwrite(os.path.join(self.src, "large"), 3 * MIB, b"changed")
        os.unlink(os.path.join(self.src, "d0/s0/f000"))
        near, far = self.transfer(SEQ=5)
        self.assert_same()
        self.assertLess(near.result["wire_sent"], MIB)
        self.assertEqual(5, far.result["seq"])
        self.assert_no_temporaries()

    def test_events_on_standard_output(self):
        trees.small_tree(self.src)
        near, far = self.transfer()
        self.assertEqual("start", near.events[0]["event"])
        self.assertEqual(("mover", "source"), (near.events[0]["command"], near.events[0]["role"]))
        self.assertEqual(["start", "listening"], [e["event"] for e in far.events[:2]])
        for run in (near, far):
            self.assertEqual(["summary", "result"], [e["event"] for e in run.events[-2:]])

    def test_psk_txt(self):
        trees.small_tree(self.src)
        folder = self.path("flat")
        os.makedirs(folder)
        trees.write(os.path.join(folder, "psk.txt"), f"pair:{self.key}\n".encode(), mode=0o600)
        far = self.destination()
        self.source(far.port, KEYS=folder).end()
        far.end()
        self.assert_same()

    def test_extra_items_go_or_stay(self):
        trees.small_tree(self.src)
        trees.write(os.path.join(self.dst, "extra"), b"x")
        self.transfer(DELETE="false")
        self.assertTrue(os.path.exists(os.path.join(self.dst, "extra")))
        self.transfer()
        self.assert_same()

    def test_exclude_and_preserve(self):
        trees.write(os.path.join(self.src, "keep"), b"x", mode=0o777)
        trees.write(os.path.join(self.src, "cache/f"), b"x")
        trees.write(os.path.join(self.src, "a.tmp"), b"x")
        self.transfer(EXCLUDE="/cache\n*.tmp\n", PRESERVE="times,sparse")
        self.assertEqual(["keep"], os.listdir(self.dst))
        self.assertNotEqual(0o777, os.stat(os.path.join(self.dst, "keep")).st_mode & 0o777)

    def test_verify_full(self):
        trees.small_tree(self.src)
        near, _ = self.transfer(VERIFY="full")
        self.assert_same()
        self.assertEqual(0, near.result["error_count"])

    def test_file_image(self):
        image, copy = self.path("image"), self.path("copy")
        trees.sparse_file(image, 16 * MIB, [(0, MIB), (9 * MIB, 5000)], seed=1)
        trees.write(copy, b"old")
        near, far = self.transfer(image, copy)
        with open(image, "rb") as a, open(copy, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual("Block", near.result["peer"]["volume_mode"])
        self.assertEqual("Block", far.result["peer"]["volume_mode"])

    def test_devices(self):
        one = blockdev.loop_of_size(self, self.path("one.img"), 16 * MIB)
        two = blockdev.loop_of_size(self, self.path("two.img"), 16 * MIB)
        with open(one, "r+b") as stream:
            stream.write(trees.random_bytes(4 * MIB, 1))
        near, far = self.transfer(one, two)
        with open(one, "rb") as a, open(two, "rb") as b:
            self.assertEqual(a.read(), b.read())
        near, far = self.transfer(one, two)
        self.assertEqual(0, near.result["literal_bytes"])

    def test_source_waits_for_the_destination(self):
        trees.small_tree(self.src)
        port = free_port()
        near = self.source(port)
        wait_until(lambda: "trying again" in near.process.stderr_text(), "a refused connection")
        far = self.destination(LISTEN=f"127.0.0.1:{port}")
        near.end()
        far.end()
        self.assert_same()

    def test_destination_waits_for_another_writer(self):
        trees.small_tree(self.src)
        lock = os.open(self.dst, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        port = free_port()
        far = self.any_mover("destination", VOLUME=self.dst, LISTEN=f"127.0.0.1:{port}")
        near = self.source(port)
        wait_until(lambda: "another volferry" in far.process.stderr_text(), "the warning")
        os.close(lock)
        near.end()
        far.end()
        self.assert_same()

    def test_a_person_may_push_by_hand(self):
        trees.small_tree(self.src)
        psk = self.path("psk")
        trees.write(psk, f"pair:{self.key}\n".encode(), mode=0o600)
        far = self.destination(SEQ=9)
        self.volferry("sync", "--psk-file", psk, self.src, f"tls://127.0.0.1:{far.port}")
        run = far.end()
        self.assertIsNone(run.result["peer"])
        self.assertEqual(0, run.result["seq"])
        self.assert_same()

    def test_some_items_fail(self):
        self.need_root("a file that cannot be replaced")
        self.need_tool("chattr")
        trees.small_tree(self.src)
        self.transfer()
        victim = os.path.join(self.dst, "d0/s0/f000")
        if os.system(f"chattr +i '{victim}' 2>/dev/null") != 0:
            self.skipTest("no immutable files on this file system")
        self.addCleanup(os.system, f"chattr -i '{victim}'")
        trees.write(os.path.join(self.src, "d0/s0/f000"), b"new content")
        far = self.destination()
        near = self.source(far.port).end(3)
        run = far.end(3)
        for each in (near, run):
            self.assertEqual("partial", each.result["result"])
            self.assertEqual("ItemsFailed", each.result["reason"])
            self.assertTrue(each.result["retryable"])
            self.assertIn("d0/s0/f000", each.result["message"])
            self.assertGreater(each.result["error_count"], 0)


class Confined(MoverCase):
    """A pod's circumstances: no capabilities, another uid, a root that cannot be written."""

    def setUp(self):
        super().setUp()
        self.need_root("to become somebody else")
        self.need_tool("setpriv")
        self.need_tool("unshare")

    def test_uid_10001_without_capabilities_on_a_read_only_root(self):
        uid = 10001
        trees.small_tree(self.src)
        os.makedirs(self.dst)
        keys = make_keys(self.path("pod-keys"), key=self.key)
        for top in (self.src, self.dst, keys):
            for folder, _, files in os.walk(top):
                os.chown(folder, uid, uid)
                for name in files:
                    os.chown(os.path.join(folder, name), uid, uid)
        os.chmod(self.dir, 0o777)
        # The volume stays writable in a mount namespace whose root is not.
        script = (
            'mount --bind "$0" "$0" && mount -o remount,bind,ro / && shift 0 && '
            f"exec setpriv --reuid {uid} --regid {uid} --clear-groups --bounding-set=-all "
            '--inh-caps=-all --no-new-privs "$@"'
        )
        prefix = ("unshare", "--mount", "sh", "-c", script, self.dir)
        probe = os.system(
            "unshare --mount sh -c 'mount --bind /tmp /tmp && mount -o remount,bind,ro /' 2>/dev/null"
        )
        if probe != 0:
            self.skipTest("no mount namespaces here")
        far = self.destination(options={"prefix": prefix}, KEYS=keys)
        near = self.source(far.port, options={"prefix": prefix}, KEYS=keys).end()
        run = far.end()
        self.assert_same()
        for each in (near, run):
            self.assertEqual("ok", each.result["result"])
            self.assertEqual(0, each.result["owner_skipped"])

    def test_root_that_was_given_to_the_group_alone(self):
        """As kubelet hands a volume out with fsGroup: the root stays root's, the group may write."""
        uid = 10001
        trees.small_tree(self.src)
        os.makedirs(self.dst)
        keys = make_keys(self.path("pod-keys"), key=self.key)
        for top in (self.src, keys):
            for folder, _, files in os.walk(top):
                os.chown(folder, uid, uid)
                for name in files:
                    os.chown(os.path.join(folder, name), uid, uid)
        os.chown(self.dst, 0, uid)
        os.chmod(self.dst, 0o2775)
        os.chmod(self.dir, 0o777)
        prefix = (
            "setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--bounding-set=-all",
            "--inh-caps=-all", "--no-new-privs",
        )
        for _ in range(2):
            far = self.destination(options={"prefix": prefix}, KEYS=keys)
            near = self.source(far.port, options={"prefix": prefix}, KEYS=keys).end()
            run = far.end()
            for each in (near, run):
                self.assertEqual("ok", each.result["result"])
            self.assertEqual(1, run.result["owner_skipped"], "the root")
        state = os.stat(self.dst)
        self.assertEqual((0, uid, 0o2775), (state.st_uid, state.st_gid, state.st_mode & 0o7777))
        # All below is as at the source.
        os.chown(self.dst, uid, uid)
        source = os.stat(self.src)
        os.chmod(self.dst, source.st_mode & 0o7777)
        os.utime(self.dst, ns=(source.st_atime_ns, source.st_mtime_ns))
        self.assert_same()
