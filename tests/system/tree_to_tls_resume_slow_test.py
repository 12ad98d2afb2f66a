# SPDX-License-Identifier: Apache-2.0
"""A 512 MiB file whose transfer is cut in the middle: the next run sends at most 60 % of it."""

import os

from support import trees
from support.case import ScratchCase, shared_psk

SIZE = 512 << 20


class LargeResume(ScratchCase):
    def test_cut_in_the_middle(self):
        trees.write_random(os.path.join(self.src, "large"), SIZE, seed=1)
        os.makedirs(self.dst)
        server = self.serve(self.dst)
        relay = self.relay(server.port, cut_after=SIZE // 2)
        key = ["--psk-file", shared_psk(), "--retries", "0"]
        self.volferry("sync", *key, self.src, f"tls://127.0.0.1:{relay.port}", expect=13)
        result = self.volferry("sync", "--json", *key, self.src, server.url())
        self.assert_same()
        self.assert_no_temporaries()
        self.assertLessEqual(result.summary["literal_bytes"], SIZE * 0.6)
