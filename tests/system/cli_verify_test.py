# SPDX-License-Identifier: Apache-2.0
"""`verify A B` and `sync --verify`."""

import os
import stat
import subprocess

from support import attributes, blockdev, trees
from support.case import MAIN_TRANSPORTS, ScratchCase, over, shared_psk


class Verify(ScratchCase):
    def setUp(self):
        super().setUp()
        self.need_root("owners and devices")
        trees.metadata_tree(self.src)
        subprocess.run(["cp", "-a", "--sparse=always", self.src, self.dst], check=True)

    def verify(self, expect, *ends):
        ends = ends or (self.src, self.dst)
        text = self.volferry("verify", *ends, expect=expect)
        result = self.volferry("verify", "--json", *ends, expect=expect)
        found = {event["path"]: set(event["kinds"]) for event in result.of("difference")}
        if expect == 24:
            lines = [line for line in text.lines if " " in line]
            shown = {
                path: set(kinds.split(","))
                for kinds, path in (line.split(" ", 1) for line in lines)
            }
            for path, kinds in found.items():
                self.assertEqual(kinds, shown.get(path), f"\n{text}")
        else:
            self.assertEqual(1, len(text.lines))
            self.assertRegex(text.lines[0], r"\d")
        return found

    def test_equal(self):
        self.assertEqual({}, self.verify(0))

    def test_equal_over_tls(self):
        server = self.serve(self.dst)
        self.volferry("verify", "--psk-file", shared_psk(), self.src, server.url())
        trees.overwrite(os.path.join(self.dst, "plain"), 0, b"X")
        trees.copy_mtime(os.path.join(self.src, "plain"), os.path.join(self.dst, "plain"))
        result = self.volferry(
            "verify", "--json", "--psk-file", shared_psk(), self.src, server.url(), expect=24
        )
        self.assertEqual(["content"], result.of("difference")[0]["kinds"])

    def test_every_kind_is_named(self):
        path = lambda name: os.path.join(self.dst, name)

        def replace(name, make):
            parent = os.path.dirname(path(name))
            mtime = os.lstat(parent).st_mtime_ns
            os.unlink(path(name))
            make(path(name))
            trees.set_mtime(parent, mtime)

        def keep_time(name, action):
            mtime = os.lstat(path(name)).st_mtime_ns
            action(path(name))
            trees.set_mtime(path(name), mtime)

        keep_time("plain", lambda p: trees.overwrite(p, 0, b"X"))
        keep_time("times/zero", lambda p: trees.write(p, b"longer"))
        os.chmod(path("owned"), 0o600)
        os.chown(path("empty"), 1, 0)
        os.chown(path("empty-dir"), 0, 1)
        trees.set_mtime(path("times/one-ns"), 2)
        os.setxattr(path("xattr/user"), "user.empty", b"1")
        attributes.set_acl(path("acl/masked"), "u::rw-,u:65534:rw-,g::rw-,m::rw-,o::r--")
        keep_time("hard", lambda p: None)
        replace("links/dangling", lambda p: os.symlink("changed", p))
        trees.copy_mtime(os.path.join(self.src, "links/dangling"), path("links/dangling"))
        os.chown(path("links/dangling"), 102, 202, follow_symlinks=False)
        replace("nodes/whiteout", lambda p: os.mknod(p, stat.S_IFCHR | 0o660, os.makedev(0, 1)))
        os.chown(path("nodes/whiteout"), 3, 6)
        os.chmod(
            path("nodes/whiteout"),
            os.lstat(os.path.join(self.src, "nodes/whiteout")).st_mode & 0o7777,
        )
        trees.copy_mtime(os.path.join(self.src, "nodes/whiteout"), path("nodes/whiteout"))
        replace("nodes/zz-after", lambda p: os.mkfifo(p))
        keep_time("deep", lambda p: trees.write(os.path.join(p, "surplus")))
        keep_time("a/lost+found", lambda p: os.unlink(os.path.join(p, "kept")))
        def unlink_from_group(_):
            subprocess.run(["cp", "-a", path("hard/b/two"), path("hard/b/two~")], check=True)
            os.rename(path("hard/b/two~"), path("hard/b/two"))

        keep_time("hard/b", unlink_from_group)

        found = self.verify(24)
        expected = {
            "plain": {"content"},
            "times/zero": {"size"},
            "owned": {"mode"},
            "empty": {"owner"},
            "empty-dir": {"group"},
            "times/one-ns": {"mtime"},
            "xattr/user": {"xattr"},
            "acl/masked": {"acl"},
            "links/dangling": {"target"},
            "nodes/whiteout": {"rdev"},
            "nodes/zz-after": {"type"},
            "deep/surplus": {"extra"},
            "a/lost+found/kept": {"missing"},
            "hard/b/two": {"hardlink"},
        }
        for name, kinds in expected.items():
            got = found.pop(name, set())
            if name == "times/zero":
                got.discard(
                    "content"
                )  # content of another length differs too; either telling is right
            self.assertEqual(kinds, got, name)
        self.assertEqual({}, found)

    def test_root_itself(self):
        os.chmod(self.dst, 0o700)
        found = self.verify(24)
        self.assertEqual([{"mode"}], list(found.values()))

    def test_odd_names(self):
        odd = self.path("odd")
        trees.odd_names_tree(odd)
        empty = self.path("empty")
        os.mkdir(empty)
        found = self.verify(24, odd, empty)
        for name in trees.ODD_NAMES:
            self.assertTrue({trees.escaped(name), trees.escaped(name) + "/"} & found.keys(), name)

    def test_changes_nothing(self):
        from support import compare

        before = compare.frozen(compare.snapshot(self.src)), compare.frozen(
            compare.snapshot(self.dst)
        )
        self.verify(0)
        self.assertEqual(
            before,
            (
                compare.frozen(compare.snapshot(self.src)),
                compare.frozen(compare.snapshot(self.dst)),
            ),
        )

    def test_devices_and_files(self):
        trees.write_random(self.path("a"), 3 << 20, seed=1)
        trees.write_random(self.path("b"), 3 << 20, seed=1)
        trees.copy_mtime(self.path("a"), self.path("b"))
        self.volferry("verify", self.path("a"), self.path("b"))
        device = blockdev.loop_of_size(self, self.path("image"), 3 << 20)
        self.volferry("verify", self.path("a"), device, expect=24)
        self.volferry("sync", self.path("a"), device)
        self.volferry("verify", self.path("a"), device)
        trees.overwrite(device, (3 << 20) - 1, b"\x55")
        self.volferry("verify", self.path("a"), device, expect=24)

    def test_missing_side(self):
        self.assert_error(
            self.volferry("verify", self.src, self.path("nowhere"), expect=(2, 22)),
            (2, 22),
            "nowhere",
        )


@over(*MAIN_TRANSPORTS)
class SyncVerify:
    def test_clean(self):
        trees.small_tree(self.src)
        self.sync("--verify")
        self.assert_same()

    def test_finds_what_the_quick_check_trusted(self):
        for root, content in ((self.src, b"one"), (self.dst, b"two")):
            trees.write(os.path.join(root, "f"), content * 1000, mtime_ns=10**18)
            trees.write(os.path.join(root, "good"), b"good", mtime_ns=10**18)
        result = self.sync(expect=0)
        result = self.sync("--verify", expect=24)
        self.assertEqual(["f"], [event["path"] for event in result.of("difference")], f"\n{result}")
        self.sync("--verify", "-c")
        self.assert_same()
