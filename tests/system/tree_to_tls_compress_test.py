# SPDX-License-Identifier: Apache-2.0
"""--compress: what crosses the wire for text and for what cannot be compressed."""

import os

from support import trees
from support.case import TLS_PULL, TLS_PUSH, over, shared_psk

MIB = trees.MIB


@over(TLS_PUSH, TLS_PULL)
class Compress:
    def wire(self, content: bytes, *options) -> int:
        for root in (self.src, self.dst):
            path = os.path.join(root, "f")
            if os.path.exists(path):
                os.unlink(path)
        trees.write(os.path.join(self.src, "f"), content)
        result = self.sync("--no-durable", *options)
        self.assert_same()
        self.assertEqual(
            len(content), result.summary["literal_bytes"], "compression is not what this counts"
        )
        return result.wire

    def test_off_and_levels(self):
        text = trees.text_bytes(4 * MIB, 1)
        off = self.wire(text, "--compress", "off")
        self.assertGreaterEqual(off, len(text))
        default = self.wire(text, "--compress", "zstd")
        self.assertLess(default, len(text) * 0.5)
        fast = self.wire(text, "--compress", "zstd:1")
        strong = self.wire(text, "--compress", "zstd:19")
        self.assertLess(strong, fast)

    def test_incompressible_does_not_grow(self):
        noise = trees.random_bytes(4 * MIB, 1)
        for mode in ("auto", "zstd", "off"):
            self.assertLess(self.wire(noise, "--compress", mode), len(noise) * 1.01 + 32_768, mode)

    def test_small_files_are_compressed_too(self):
        for number in range(500):
            trees.write(os.path.join(self.src, f"d/f{number}"), trees.text_bytes(4000, number))
        result = self.sync("--compress", "zstd")
        self.assert_same()
        self.assertLess(result.wire, 500 * 4000 * 0.7)

    def test_auto_compresses_on_a_slow_link(self):
        text = trees.text_bytes(8 * MIB, 1)
        trees.write(os.path.join(self.src, "f"), text)
        os.makedirs(self.dst)
        push = self.transport == TLS_PUSH
        server = self._server(self.dst if push else self.src)
        relay = self.relay(server.port, rate=4 * MIB)
        url = f"tls://127.0.0.1:{relay.port}"
        ends = [self.src, url] if push else [url, self.dst]
        self.volferry("sync", "--psk-file", shared_psk(), *ends)
        self.assert_same()
        self.assertLess(relay.passed, len(text) * 0.7)

    def test_bad_modes(self):
        trees.write(os.path.join(self.src, "f"))
        for mode in ("gzip", "zstd:99", "zstd:x", "zstd:"):
            with self.subTest(mode):
                self.assert_error(self.sync("--compress", mode, expect=2), 2, "compress")
