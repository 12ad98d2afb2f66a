# SPDX-License-Identifier: Apache-2.0
"""--delete: what goes, what stays, and when nothing may go."""

import os

from support import compare, trees
from support.case import LOCAL, MAIN_TRANSPORTS, TLS_PULL, over
from support.program import PLAIN_USER


@over(*MAIN_TRANSPORTS)
class Delete:
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        self.sync()
        self.extra = os.path.join(self.dst, "d0/extra")

    def exists(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self.dst, name))

    def test_extras_stay_without_it(self):
        trees.write(self.extra, b"x")
        self.sync()
        self.assertTrue(self.exists("d0/extra"))

    def test_extras_of_every_type_go(self):
        trees.write(self.extra, b"x")
        trees.write(os.path.join(self.dst, "gone/deep/er/file"), b"x")
        os.symlink("/etc", os.path.join(self.dst, "gone/link"))
        os.symlink("nowhere", os.path.join(self.dst, "zz-link"))
        os.mkfifo(os.path.join(self.dst, "zz-fifo"))
        result = self.sync("--delete", "-i")
        self.assert_same()
        deleted = {path for code, path in result.items if code.startswith("*deleting")}
        self.assertLessEqual({"d0/extra", "zz-link", "zz-fifo"}, deleted)
        self.assertGreaterEqual(result.summary["files_deleted"], 5)

    def test_emptied_directories_go(self):
        for directory, _, names in os.walk(os.path.join(self.src, "d1"), topdown=False):
            for name in names:
                os.unlink(os.path.join(directory, name))
            os.rmdir(directory)
        self.sync("--delete")
        self.assert_same()

    def test_renamed_directory(self):
        os.rename(os.path.join(self.src, "d1"), os.path.join(self.src, "renamed"))
        self.sync("--delete")
        self.assert_same()

    def test_read_only_extras_go(self):
        trees.write(os.path.join(self.dst, "locked/file"), b"x", 0o400)
        os.chmod(os.path.join(self.dst, "locked"), 0o500)
        self.sync("--delete")
        self.assert_same()

    def test_empty_source_empties_the_destination(self):
        empty = self.path("empty")
        os.mkdir(empty)
        self.sync("--delete", source=empty)
        self.assertEqual([], os.listdir(self.dst))

    def test_excluded_is_never_deleted(self):
        trees.write(os.path.join(self.dst, "d0/keep.log"), b"x")
        trees.write(os.path.join(self.dst, "logs/a"), b"x")
        trees.write(self.extra, b"x")
        self.sync("--delete", "--exclude", "*.log", "--exclude", "logs/")
        self.assertTrue(self.exists("d0/keep.log"))
        self.assertTrue(self.exists("logs/a"))
        self.assertFalse(self.exists("d0/extra"))

    def test_dry_run_deletes_nothing_and_says_what(self):
        trees.write(self.extra, b"x")
        before = compare.frozen(compare.snapshot(self.dst))
        result = self.sync("--delete", "-n", "-i")
        self.assertEqual(before, compare.frozen(compare.snapshot(self.dst)))
        self.assertIn(
            "d0/extra", [path for code, path in result.items if code.startswith("*deleting")]
        )

    def test_many(self):
        for number in range(3000):
            trees.write(os.path.join(self.dst, f"many/{number % 10}/{number}"))
        self.sync("--delete")
        self.assert_same()


@over(*MAIN_TRANSPORTS)
class LostAndFound:
    def test_at_the_root_it_is_neither_sent_nor_deleted(self):
        self.need_root("lost+found belongs to root")
        trees.write(os.path.join(self.src, "file"), b"x")
        os.mkdir(os.path.join(self.dst, "")) if not os.path.isdir(self.dst) else None
        trees.write(os.path.join(self.dst, "lost+found/#123"), b"fragment")
        self.sync("--delete")
        self.assertTrue(os.path.exists(os.path.join(self.dst, "lost+found/#123")))
        self.assert_same(except_paths=(b"lost+found", b"lost+found/#123"), ignore=())

    def test_below_the_root_it_is_like_any_other(self):
        trees.write(os.path.join(self.src, "a/lost+found/x"), b"x")
        trees.write(os.path.join(self.dst, "b/lost+found/y"), b"y")
        self.sync("--delete")
        self.assert_same()


@over(LOCAL, TLS_PULL)
class IncompleteSource:
    """Run as a plain user: part of the source cannot be read, so nothing is deleted there, and the
    exit code says so.
    """

    def setUp(self):
        super().setUp()
        self.need_root("switching to a plain user")
        for root in (self.src, self.dst):
            trees.write(os.path.join(root, "closed/inside"), b"x")
            trees.write(os.path.join(root, "open/file"), b"x")
            for directory, _, names in os.walk(root):
                for path in (directory, *(os.path.join(directory, name) for name in names)):
                    os.chown(path, PLAIN_USER, PLAIN_USER)
        closed = os.path.join(self.src, "closed")
        os.chown(closed, 0, 0)
        os.chmod(closed, 0o700)
        trees.write(os.path.join(self.src, "open/new"), b"new")
        os.chmod(os.path.join(self.src, "open/new"), 0o644)

    def serve(self, root, *options, **kwargs):
        if self.transport == TLS_PULL:
            auth = ["--psk-file", self.plain_key()]
            return super().serve(root, *options, auth=auth, user=PLAIN_USER, **kwargs)
        return super().serve(root, *options, **kwargs)

    def plain_key(self) -> str:
        """The shared key in a file that the plain user owns."""
        from support.case import shared_psk

        path = self.path("plain-psk")
        if not os.path.exists(path):
            with open(shared_psk(), "rb") as stream:
                trees.write(path, stream.read(), 0o600)
            os.chown(path, PLAIN_USER, PLAIN_USER)
        return path

    def run_sync(self, *options):
        user = {} if self.transport == TLS_PULL else {"user": PLAIN_USER}
        return self.sync(*options, expect=3, **user)

    def test_unreadable_directory(self):
        result = self.run_sync("--delete")
        self.assert_named(result, "closed")
        self.assertEqual("partial", result.summary["result"])
        self.assertTrue(os.path.exists(os.path.join(self.dst, "closed/inside")))
        self.assertTrue(os.path.exists(os.path.join(self.dst, "open/new")))

    def test_extras_elsewhere_stay_too(self):
        trees.write(os.path.join(self.dst, "extra"), b"x")
        os.chown(os.path.join(self.dst, "extra"), PLAIN_USER, PLAIN_USER)
        os.chmod(self.dst, 0o777)
        self.run_sync("--delete")
        self.assertTrue(os.path.exists(os.path.join(self.dst, "closed/inside")))

    def test_unreadable_file_does_not_stop_the_others(self):
        os.chmod(os.path.join(self.src, "closed"), 0o755)
        secret = os.path.join(self.src, "open/secret")
        trees.write(secret, b"secret", 0o600)
        result = self.run_sync()
        self.assert_named(result, "secret")
        self.assertTrue(os.path.exists(os.path.join(self.dst, "open/new")))
        self.assertFalse(os.path.exists(os.path.join(self.dst, "open/secret")))
