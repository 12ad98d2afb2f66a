# SPDX-License-Identifier: Apache-2.0
"""What a run says: dry run, itemized changes, JSON, --stats, -q, -v."""

import os
import re

from support import attributes, compare, trees
from support.case import LOCAL, MAIN_TRANSPORTS, SSH_PUSH, ScratchCase, over
from support.program import PLAIN_USER


@over(*MAIN_TRANSPORTS, SSH_PUSH)
class DryRun:
    def test_writes_nothing_and_tells_the_truth(self):
        self.need_root("owners and devices")
        trees.metadata_tree(self.src)
        trees.small_tree(self.dst)
        trees.write(os.path.join(self.dst, "plain"), b"other")
        os.chmod(self.dst, 0o700)
        before = compare.frozen(compare.snapshot(self.dst))
        planned = self.sync("-n", "-i", "--delete")
        self.assertEqual(before, compare.frozen(compare.snapshot(self.dst)))
        again = self.sync("--dry-run", "--itemize-changes", "--delete")
        self.assertEqual(sorted(planned.items), sorted(again.items))
        done = self.sync("-i", "--delete")
        self.assertEqual(sorted(planned.items), sorted(done.items))
        self.assertEqual(planned.summary["files_transferred"], done.summary["files_transferred"])
        self.assertEqual(planned.summary["files_deleted"], done.summary["files_deleted"])
        self.assert_same()

    def test_of_a_missing_destination_makes_none(self):
        if self.transport != LOCAL:
            self.skipTest("a server needs its root to exist")
        trees.small_tree(self.src)
        self.sync("-n")
        self.assertFalse(os.path.lexists(self.dst))

    def test_reads_no_access_times_into_trouble(self):
        trees.small_tree(self.src)
        self.sync()
        before = compare.frozen(compare.snapshot(self.src))
        self.sync("-n", "-c")
        self.assertEqual(before, compare.frozen(compare.snapshot(self.src)))


class Itemize(ScratchCase):
    """The text form, line by line."""

    def lines(self, *options):
        result = self.volferry("sync", "-i", *options, self.src, self.dst)
        for line in result.lines:
            self.assertRegex(
                line, r"^(\*deleting   |[>.ch<][fdLDS][.+?cstpogaux]{9} )", f"\n{result}"
            )
        return set(result.lines)

    def setUp(self):
        super().setUp()
        self.need_root("owners and devices")
        trees.write(os.path.join(self.src, "d/file"), b"content")
        trees.write(os.path.join(self.src, "d/other"), b"content")
        os.symlink("target", os.path.join(self.src, "link"))
        os.link(os.path.join(self.src, "d/file"), os.path.join(self.src, "z-hard"))
        os.mkfifo(os.path.join(self.src, "fifo"))
        os.mknod(os.path.join(self.src, "null"), 0o20666, os.makedev(1, 3))

    def test_new(self):
        expected = {
            "cd+++++++++ d/",
            "hf+++++++++ d/file => z-hard",
            ">f+++++++++ d/other",
            "cL+++++++++ link -> target",
            ">f+++++++++ z-hard",
            "cS+++++++++ fifo",
            "cD+++++++++ null",
        }
        lines = self.lines()
        # The files of a directory come before what is below it. The root may be there already.
        self.assertTrue(all(line.endswith(" ./") for line in lines - expected), lines)
        self.assertLessEqual(expected, lines)

    def test_changes(self):
        self.lines()
        self.assertEqual(set(), self.lines())
        path = os.path.join(self.src, "d/other")
        trees.write(path, b"longer content")
        self.assertEqual({">f.st...... d/other"}, self.lines())
        os.chmod(path, 0o600)
        self.assertEqual({".f...p..... d/other"}, self.lines())
        os.chown(path, 5, 0)
        self.assertEqual({".f....o.... d/other"}, self.lines())
        os.chown(path, 5, 6)
        self.assertEqual({".f.....g... d/other"}, self.lines())
        os.setxattr(path, "user.a", b"1")
        self.assertEqual({".f........x d/other"}, self.lines())
        trees.set_mtime(path, 5)
        self.assertEqual({".f..t...... d/other"}, self.lines("-c"))
        trees.set_mtime(os.path.join(self.src, "d"), 5)
        self.assertEqual({".d..t...... d/"}, self.lines())
        attributes.set_acl(path, "u::rw-,u:33:r--,g::r--,m::r--,o::---")
        (line,) = self.lines()
        self.assertEqual("a", line[9])
        before = os.stat(path).st_mtime_ns
        trees.overwrite(path, 0, b"L")
        trees.set_mtime(path, before)
        self.assertEqual({">fc........ d/other"}, self.lines("-c"))

    def test_link_target_and_deletion(self):
        self.lines()
        os.unlink(os.path.join(self.src, "link"))
        os.symlink("elsewhere", os.path.join(self.src, "link"))
        os.unlink(os.path.join(self.src, "d/other"))
        lines = self.lines("--delete")
        self.assertIn("*deleting   d/other", lines)
        self.assertTrue(
            any(re.match(r"c?\S*Lc\S{8} link -> elsewhere$", line) for line in lines), lines
        )

    def test_deleted_directory_has_a_slash(self):
        self.lines()
        trees.write(os.path.join(self.dst, "gone/file"), b"x")
        self.assertIn("*deleting   gone/", self.lines("--delete"))

    def test_dry_run_without_i_prints_no_items(self):
        result = self.volferry("sync", "-n", self.src, self.dst)
        self.assertNotIn("+++++", result.stdout.decode())

    def test_odd_names_stay_one_line(self):
        trees.write(os.fsencode(self.src) + b"/new\nline\xff\x1b[31m\\", b"x")
        self.assertIn(">f+++++++++ new\\x0aline\\xff\\x1b[31m\\\\", self.lines())


@over(*MAIN_TRANSPORTS)
class Json:
    def test_events(self):
        trees.small_tree(self.src)
        result = self.sync("-i")
        self.assertEqual("start", result.events[0]["event"])
        self.assertGreaterEqual(len(result.items), 40)
        summary = result.summary
        for field in (
            "files_total files_transferred files_deleted dirs_total bytes_total literal_bytes matched_bytes "
            "zero_bytes wire_sent wire_received"
        ).split():
            self.assertIsInstance(summary[field], int, field)
            self.assertGreaterEqual(summary[field], 0, field)
        self.assertEqual([], summary["errors"])

    def test_bytes_add_up(self):
        content = trees.random_bytes(1 << 20, 1)
        trees.write(os.path.join(self.src, "f"), content + bytes(4 << 20) + content)
        summary = self.sync().summary
        self.assertEqual(6 << 20, summary["bytes_total"])
        if self.remote:  # a local copy does not look for zeros that are allocated
            self.assertEqual(4 << 20, summary["zero_bytes"])
        parts = summary["literal_bytes"] + summary["matched_bytes"] + summary["zero_bytes"]
        self.assertEqual(6 << 20, parts)

    def test_error_events(self):
        self.need_root("switching to a plain user")
        if self.transport != LOCAL:
            self.skipTest("the local form is enough")
        trees.write(os.path.join(self.src, "secret\n"), b"x", 0o600)
        os.chmod(self.src, 0o755)
        os.chown(self.dir, PLAIN_USER, PLAIN_USER)
        result = self.sync(user=PLAIN_USER, expect=3)
        (error,) = result.of("error")
        self.assertIn("secret\\x0a", error["path"])
        self.assertEqual(13, error["errno"])
        self.assertTrue(error["what"])
        self.assertEqual("partial", result.summary["result"])
        self.assertEqual(3, result.summary["exit_code"])


class Output(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)

    def test_quiet_on_success(self):
        result = self.volferry("sync", self.src, self.dst)
        self.assertEqual("", result.stderr)

    def test_q_prints_nothing_at_all(self):
        result = self.volferry("sync", "-q", self.src, self.dst)
        self.assertEqual((b"", ""), (result.stdout, result.stderr))

    def test_q_keeps_errors(self):
        result = self.volferry("sync", "-q", self.path("nowhere"), self.dst, expect=(2, 22))
        self.assert_error(result, (2, 22), "nowhere")

    def test_stats(self):
        trees.write_random(os.path.join(self.src, "f"), 1 << 20, seed=1)
        result = self.volferry("sync", "--stats", self.src, self.dst)
        self.assertIn("41", result.stdout.decode(), "the number of files")
        self.assertRegex(result.stdout.decode(), "uring|threads")
        self.assertEqual("", result.stderr)

    def test_v_logs_lines_on_stderr(self):
        quiet = self.volferry("sync", self.src, self.path("a"))
        verbose = self.volferry("sync", "-v", self.src, self.path("b"))
        self.assertEqual("", quiet.stderr)
        self.assertTrue(verbose.stderr.strip())
        self.assertEqual(b"", verbose.stdout.replace(quiet.stdout, b""))
