# SPDX-License-Identifier: Apache-2.0
"""`serve`: modes, sub-paths, ends, one writer at a time."""

import json
import os
import signal

from support import compare, trees
from support.case import ScratchCase, shared_psk
from support.program import parse_events
from support.wait import wait_until

MIB = trees.MIB


class Serve(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        os.makedirs(self.dst)
        self.key = ["--psk-file", shared_psk()]

    def sync(self, source, destination, *options, expect=0):
        return self.volferry(
            "sync", *self.key, "--retries", "0", *options, source, destination, expect=expect
        )

    def test_read_only_refuses_pushes(self):
        server = self.serve(self.dst, "--read-only")
        self.assert_error(self.sync(self.src, server.url(), expect=2), 2, "read-only")
        self.assertEqual([], os.listdir(self.dst))
        self.sync(server.url(), self.path("pulled"))

    def test_write_only_refuses_pulls(self):
        server = self.serve(self.src, "--write-only")
        self.assert_error(self.sync(server.url(), self.dst, expect=2), 2, "write-only")
        self.assertEqual([], os.listdir(self.dst))

    def test_both_modes_at_once(self):
        result = self.volferry(
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--root",
            self.dst,
            *self.key,
            "--read-only",
            "--write-only",
            expect=2,
            timeout=20,
        )
        self.assert_error(result, 2)

    def test_missing_root(self):
        result = self.volferry(
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--root",
            self.path("nowhere"),
            *self.key,
            expect=2,
            timeout=20,
        )
        self.assert_error(result, 2, self.path("nowhere"))

    def test_taken_port(self):
        server = self.serve(self.dst)
        result = self.volferry(
            "serve",
            "--listen",
            f"127.0.0.1:{server.port}",
            "--root",
            self.src,
            *self.key,
            expect=(2, 10),
            timeout=20,
        )
        self.assert_error(result, (2, 10), str(server.port))

    def test_once_ends_after_one_sync(self):
        server = self.serve(self.dst, "--once")
        self.sync(self.src, server.url())
        self.assert_same()
        self.assertEqual(0, server.process.wait(30).code)

    def test_once_survives_a_refused_client(self):
        from support import keys

        server = self.serve(self.dst, "--once")
        other = keys.make_psk(self.path("other"))
        self.volferry(
            "sync", "--psk-file", other, "--retries", "0", self.src, server.url(), expect=11
        )
        self.sync(self.src, server.url())
        self.assertEqual(0, server.process.wait(30).code)

    def test_serves_one_after_the_other(self):
        server = self.serve(self.dst)
        for number in range(5):
            trees.write(os.path.join(self.src, f"round{number}"), b"x")
            self.sync(self.src, server.url())
            self.assert_same()

    def test_idle_sigterm(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.serve(self.dst)
            server.process.send(number)
            self.assertIn(server.process.wait(30).code, (0, 128 + number))

    def test_sigterm_tells_the_client_why(self):
        trees.write_random(os.path.join(self.src, "large"), 32 * MIB, seed=1)
        server = self.serve(self.dst)
        client = self.start(
            "sync", *self.key, "--retries", "0", "--bwlimit", "8M", self.src, server.url()
        )
        wait_until(lambda: compare.temporaries(self.dst), "the sync to be under way")
        server.process.send(signal.SIGTERM)
        self.assertIn(server.process.wait(30).code, (0, 143))
        run = client.wait(60)
        self.assertNotEqual(0, run.code)
        self.assertRegex(run.stderr.lower(), "stop|shut|terminat|sigterm|ending")
        again = self.serve(self.dst)
        self.sync(self.src, again.url())
        self.assert_same()
        self.assert_no_temporaries()

    def test_client_interrupted_leaves_the_server_fit(self):
        trees.write_random(os.path.join(self.src, "large"), 32 * MIB, seed=1)
        server = self.serve(self.dst)
        client = self.start("sync", *self.key, "--bwlimit", "8M", self.src, server.url())
        wait_until(lambda: compare.temporaries(self.dst), "the sync to be under way")
        client.send(signal.SIGINT)
        self.assertEqual(130, client.wait(30).code)
        self.sync(self.src, server.url())
        self.assert_same()

    def test_sub_path(self):
        server = self.serve(self.src)
        self.sync(server.url("/d1"), self.dst)
        self.assert_same(a=os.path.join(self.src, "d1"))
        self.sync(server.url("/d1/s1/"), self.path("deeper"))
        self.assert_same(a=os.path.join(self.src, "d1/s1"), b=self.path("deeper"))

    def test_push_to_a_sub_path(self):
        server = self.serve(self.dst)
        os.makedirs(os.path.join(self.dst, "below/here"))
        trees.write(os.path.join(self.dst, "beside"), b"x")
        self.sync(self.src, server.url("/below/here"), "--delete")
        self.assert_same(b=os.path.join(self.dst, "below/here"))
        self.assertTrue(os.path.exists(os.path.join(self.dst, "beside")))

    def test_sub_path_cannot_leave_the_root(self):
        trees.write(self.path("secret/file"), b"x")
        os.symlink(self.path("secret"), os.path.join(self.src, "link"))
        server = self.serve(self.src)
        for path in ("/../secret", "/d1/../../secret", "/link", "/%2e%2e/secret"):
            with self.subTest(path):
                self.sync(server.url(path), self.path("stolen"), expect=(2, 12, 22))
                self.assertFalse(os.path.exists(self.path("stolen/file")))

    def test_missing_sub_path(self):
        server = self.serve(self.src)
        self.assert_error(
            self.sync(server.url("/nowhere"), self.dst, expect=(2, 22)), (2, 22), "nowhere"
        )

    def test_root_with_legitimate_links_inside(self):
        os.symlink("d1", os.path.join(self.src, "link"))
        os.symlink("../../etc/passwd", os.path.join(self.src, "escape"))
        server = self.serve(self.src)
        self.sync(server.url(), self.dst)
        self.assert_same()


class OneWriter(ScratchCase):
    """Two syncs to one destination: the second is refused, the first completes."""

    def setUp(self):
        super().setUp()
        trees.write_random(os.path.join(self.src, "large"), 8 * MIB, seed=1)
        os.makedirs(self.dst)
        self.key = ["--psk-file", shared_psk()]

    def check(self, first: list, second: list):
        # Longer than a server waits for a session that is just ending.
        process = self.start("sync", "--json", "--bwlimit", "1M", *first)
        wait_until(lambda: compare.temporaries(self.dst), "the first sync to be under way")
        refused = self.volferry("sync", "--retries", "0", *second, expect=(2, 3, 20, 21, 22))
        self.assert_error(refused, refused.code)
        self.assertRegex(refused.stderr.lower(), "another|already|in use|busy|lock")
        result = parse_events(process.wait())
        self.assert_exit(result, 0)
        self.assert_same()

    def test_local(self):
        self.check([self.src, self.dst], [self.src, self.dst])

    def test_two_clients_of_one_server(self):
        server = self.serve(self.dst)
        ends = [*self.key, self.src, server.url()]
        self.check(ends, ends)

    def test_local_beside_a_server(self):
        server = self.serve(self.dst)
        self.check([*self.key, self.src, server.url()], [self.src, self.dst])

    def test_readers_do_not_exclude_each_other(self):
        server = self.serve(self.src)
        pulls = [
            self.start(
                "sync", "--json", "--bwlimit", "8M", *self.key, server.url(), self.path(name)
            )
            for name in ("one", "two")
        ]
        for process, name in zip(pulls, ("one", "two")):
            self.assert_exit(parse_events(process.wait()), 0)
            self.assert_same(b=self.path(name))

    def test_server_logs_are_lines(self):
        server = self.serve(self.dst, "-v")
        self.volferry("sync", *self.key, self.src, server.url())
        run = server.stop()
        self.assertIn(run.code, (0, 143))
        self.assertTrue(run.stderr.strip(), "-v logs events")
        self.assertNotIn("Traceback", run.stderr)
        self.assertEqual(1, len(run.stdout.splitlines()), json.dumps(run.lines))
