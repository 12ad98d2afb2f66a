# SPDX-License-Identifier: Apache-2.0
"""Limits: other programs' output is read right, and the bound is the sum that it should be."""

import json
import unittest

from compare_support import bounds, limits, links, machine, workloads


def event(name, rate, limit, limit_name):
    return json.dumps({"event": "measurement", "name": name, "unit": "bytes/s", "rate": rate,
                       "limit": limit, "limit_name": limit_name, "note": ""})


class Reading(unittest.TestCase):

    def test_bench(self):
        found = limits.of_bench("\n".join([
            event("read, cached", 5, 7, "plain pread"),
            event("write, buffered", 9, 7, "plain pwrite"),
            event("hash xxh3", 12, 17, "memory read"),
            event("loopback TLS, 1 stream", 2, 3, "loopback TCP, 1 stream"),
            event("read, direct", 4, None, ""),
            event("create 4 KiB files, 1 thread", 8, 9, "plain calls"),
            json.dumps({"event": "summary", "result": "ok"})]))
        self.assertEqual({name: item["rate"] for name, item in found.items()},
                         {"cached read": 7, "cached write": 9, "xxh3": 12, "loopback TCP": 3,
                          "disk read": 4, "create": 8})

    def test_openssl(self):
        found = limits.of_openssl("+H:16384\n+F:25:AES-128-GCM:4449712355.56\n")
        self.assertEqual(found["AES-128-GCM"]["rate"], 4449712355.56)
        self.assertEqual(limits.of_openssl(""), {})

    def test_link(self):
        rate = limits.link_rate(links.Link(80e6, 0.002), machine.Ports(), seconds=0.2)
        self.assertTrue(1e6 < rate < 12e6, rate)


# Rates that make each amount below a whole number of seconds.
RATES = {"cached read": 100, "cached write": 50, "AES-128-GCM": 200, "loopback TCP": 100, "xxh3": 400,
         "stat": 10, "create": 5, "disk read": 20, "disk write": 10}
LIMITS = {name: {"rate": rate} for name, rate in RATES.items()}
WARM = {"cores": 2, "cold": False}


class Bound(unittest.TestCase):

    def bound(self, key, leg, contender="volferry", run=WARM, known=LIMITS, durable=False, sent=None,
              **facts):
        workload, = (item for item in workloads.ALL if item.key == key)
        entry = {"leg": leg, "contender": contender, "durable": durable, "wall_s": 100.0,
                 "wire_up": sent}
        size = {"files": 0, "directories": 0, "bytes": 1000, "data_bytes": 1000, "changed": 100}
        return bounds.bound(entry, workload, size | facts, known, run)

    def seconds(self, *arguments, **facts):
        return self.bound(*arguments, **facts)["bound_s"]

    def test_full_local_is_read_and_write_on_both_cores(self):
        self.assertAlmostEqual(self.seconds("W1", "local"), (10 + 20) / 2)

    def test_full_over_tls(self):
        self.assertAlmostEqual(self.seconds("W1", "tls"), (10 + 20 + 10 + 10) / 2)

    def test_compressed(self):
        self.assertAlmostEqual(self.seconds("W1", "tls", sent=500), (10 + 20 + 5 + 5) / 2)

    def test_holes_do_not_count(self):
        self.assertAlmostEqual(self.seconds("W7", "local", data_bytes=100), (1 + 2) / 2)

    def test_small_files(self):
        self.assertAlmostEqual(self.seconds("W2", "local", files=15, directories=5, data_bytes=0), (2 + 3) / 2)
        # A created file has its first 4 KiB already: 100 bytes are left to write.
        self.assertAlmostEqual(self.seconds("W2", "local", files=1, data_bytes=4196),
                               (0.1 + 0.2 + 41.96 + 2) / 2)
        self.assertAlmostEqual(self.seconds("W4a", "local", files=15, directories=5, changed=0), 4 / 2)

    def test_delta(self):
        read, hashed, cipher, wire = 20, 5, 1, 1
        self.assertAlmostEqual(self.seconds("W5", "tls"), (read + hashed + cipher + wire + 20) / 2)
        self.assertAlmostEqual(self.seconds("W5", "tls", "volferry-inplace"),
                               (read + hashed + cipher + wire + 2) / 2)
        self.assertAlmostEqual(self.seconds("W5", "local"), (10 + 20) / 2)
        self.assertAlmostEqual(self.seconds("W8b", "local"), (read + 2) / 2)

    def test_disk(self):
        value = self.bound("W1", "local", durable=True)
        self.assertEqual((value["by"], value["bound_s"], value["share"]), ("disk", 100.0, 1.0))
        value = self.bound("W1", "local", run={"cores": 2, "cold": True})
        self.assertEqual((value["by"], value["bound_s"], value["share"]), ("disk", 50.0, 0.5))

    def test_link(self):
        value = self.bound("W10c", "tls", data_bytes=0)
        self.assertEqual(value["by"], "link")
        self.assertAlmostEqual(value["bound_s"], 0.150)

    def test_unknown(self):
        self.assertIsNone(self.bound("W1", "ssh"))
        self.assertIsNone(self.bound("W1", "tls", known={}))


if __name__ == "__main__":
    unittest.main()
