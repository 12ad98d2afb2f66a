# SPDX-License-Identifier: Apache-2.0
"""SSH endpoints: their spellings, -e, --remote-command, and what goes wrong on the far side."""

import os
import pwd
import stat

from support import program, trees
from support.case import ScratchCase, shared_sshd
from support.sshd import HOST


class Ssh(ScratchCase):
    def setUp(self):
        super().setUp()
        self.daemon = shared_sshd()
        trees.small_tree(self.src)
        self.far = ["--remote-command", program.program()]
        self.shell = ["-e", self.daemon.command]

    def sync(self, *args, expect=0, **options):
        return self.volferry("sync", *args, expect=expect, timeout=60, **options)

    def test_spellings(self):
        user = pwd.getpwuid(os.geteuid()).pw_name
        for number, end in enumerate(
            (
                f"{HOST}:%s",
                f"{user}@{HOST}:%s",
                f"ssh://{HOST}%s",
                f"ssh://{user}@127.0.0.1:{self.daemon.port}%s",
            )
        ):
            with self.subTest(end):
                target = self.path(f"dst{number}")
                self.sync(*self.shell, *self.far, self.src, end % target)
                self.assert_same(b=target)
                back = self.path(f"back{number}")
                self.sync(*self.shell, *self.far, end % self.src, back)
                self.assert_same(b=back)

    def test_long_option_is_the_same(self):
        self.sync("--ssh", self.daemon.command, *self.far, self.src, f"{HOST}:{self.dst}")
        self.assert_same()

    def test_relative_path_is_below_the_home(self):
        home = pwd.getpwuid(os.geteuid()).pw_dir
        relative = os.path.relpath(self.dst, home)
        self.sync(*self.shell, *self.far, self.src, f"{HOST}:{relative}")
        self.assert_same()

    def test_ssh_command_with_quotes(self):
        odd = self.path("odd name")
        os.symlink(self.daemon.config, odd)
        self.sync("-e", f"ssh -F '{odd}'", *self.far, self.src, f"{HOST}:{self.dst}")
        self.assert_same()

    def test_far_path_with_shell_characters(self):
        for number, name in enumerate(
            ("a b", "$(touch pwned)", "`id`", "quote'", 'double"', "semi;colon", "back\\")
        ):
            with self.subTest(name):
                target = self.path(f"t{number}", name)
                os.makedirs(self.path(f"t{number}"))
                self.sync(*self.shell, *self.far, self.src, f"{HOST}:{target}")
                self.assert_same(b=target)
        self.assertFalse(os.path.exists(os.path.expanduser("~/pwned")))

    def test_path_that_looks_like_an_option(self):
        self.assert_error(self.sync(*self.shell, self.src, "-oProxyCommand=id:/x", expect=2), 2)
        result = self.sync(
            *self.shell, *self.far, self.src, "ssh://-oProxyCommand=id/x", expect=(2, 10)
        )
        self.assert_exit(result, (2, 10))

    def test_remote_command_is_missing(self):
        result = self.sync(
            *self.shell,
            "--remote-command",
            "/no/such/volferry",
            "--retries",
            "0",
            self.src,
            f"{HOST}:{self.dst}",
            expect=(10, 12),
        )
        self.assertIn("volferry: error: ", result.stderr)
        self.assertIn("/no/such/volferry", result.stderr)

    def test_ssh_program_is_missing(self):
        result = self.sync(
            "-e", "/no/such/ssh", "--retries", "0", self.src, f"{HOST}:{self.dst}", expect=(2, 10)
        )
        self.assert_error(result, (2, 10), "/no/such/ssh")

    def test_closed_port(self):
        from support.sshd import free_port

        end = f"ssh://127.0.0.1:{free_port()}{self.dst}"
        result = self.sync(*self.shell, *self.far, "--retries", "0", self.src, end, expect=10)
        self.assertIn("volferry: error: ", result.stderr)

    def test_login_banner_noise(self):
        """A shell start-up file that prints would be read as protocol: this must be a clear error,
        not a hang.
        """
        noisy = self.path("noisy")
        trees.write(
            noisy,
            f'#!/bin/sh\necho "Welcome to this machine"\nexec {program.program()} "$@"\n'.encode(),
            0o755,
        )
        result = self.sync(
            *self.shell,
            "--remote-command",
            noisy,
            "--retries",
            "0",
            self.src,
            f"{HOST}:{self.dst}",
            expect=(10, 12),
        )
        self.assertIn("volferry: error: ", result.stderr)

    def test_missing_source_over_there(self):
        result = self.sync(
            *self.shell, *self.far, f"{HOST}:{self.path('nowhere')}", self.dst, expect=(2, 22)
        )
        self.assertIn("nowhere", result.stderr)

    def test_device_on_the_far_side(self):
        from support import blockdev, compare

        device = blockdev.loop_of_size(self, self.path("image"), 4 << 20)
        trees.write_random(self.path("content"), 4 << 20, seed=1)
        self.sync(*self.shell, *self.far, self.path("content"), f"{HOST}:{device}")
        blockdev.drop_buffers(device)
        self.assertTrue(stat.S_ISBLK(os.stat(device).st_mode))
        self.assertEqual(compare.file_digest(self.path("content")), compare.file_digest(device))
