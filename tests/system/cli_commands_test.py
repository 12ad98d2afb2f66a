# SPDX-License-Identifier: Apache-2.0
"""`version`, `keygen`, `bench`, help."""

import json
import unittest

from support.case import ScratchCase


class Commands(ScratchCase):
    def test_version(self):
        result = self.volferry("version")
        self.assertRegex(result.stdout.decode(), r"^volferry \d+\.\d+")
        self.assertEqual("", result.stderr)

    def test_help_names_every_option(self):
        text = self.volferry("sync", "--help").stdout.decode()
        for option in (
            "--delete --exclude --include --exclude-from --dry-run --itemize-changes --checksum --one-file-system "
            "--inplace --no-owner --no-perms --no-times --no-xattrs --no-acls --no-hardlinks --no-devices --bwlimit "
            "--compress --streams --threads --memory --io --direct --verify --hash --durable --timeout --retries "
            "--connect-timeout --psk-file --cert --key --ca --ssh --remote-command --progress --json --stats"
        ).split():
            self.assertIn(option, text)
        overview = self.volferry("--help").stdout.decode()
        for command in ("sync", "serve", "verify", "bench", "keygen", "version"):
            self.assertIn(command, overview)

    def test_keygen(self):
        lines = {self.volferry("keygen").stdout.decode() for _ in range(3)}
        self.assertEqual(3, len(lines), "keys must differ")
        for line in lines:
            self.assertRegex(line, r"\A[^:\s]+:[0-9a-f]{64,128}\n\Z")

    def test_bench_as_json(self):
        result = self.volferry("bench", "--json", cwd=self.dir, timeout=110)
        lines = [json.loads(line) for line in result.stdout.decode().splitlines()]
        self.assertTrue(lines)
        text = json.dumps(lines)
        for name in ("read", "write", "hash", "weak", "delta", "tls", "create 4 kib files"):
            self.assertIn(name, text.lower())


if __name__ == "__main__":
    unittest.main()
