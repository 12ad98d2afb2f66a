# SPDX-License-Identifier: Apache-2.0
"""Verdicts: what was reached is compared with what was wanted, in the right direction."""

import unittest

from compare_support import targets, workloads
from compare_support.targets import Target


def line(contender, wall_s, workload="W1", leg="tls", **more):
    return {"workload": workload, "leg": leg, "contender": contender, "wall_s": wall_s,
            "peer": not contender.startswith("volferry"), "wire_up": None, "wire_down": None} | more


class Verdicts(unittest.TestCase):

    def judge(self, target, table, backend="auto", facts=()):
        return targets.verdicts(table, facts, workloads.ALL, backend, [target])

    def test_peer(self):
        target = Target("W1", "tls", peer="rsync-tls", least=2.5)
        for own, ok in ((0.4, True), (0.41, False)):
            verdict, = self.judge(target, [line("volferry", own), line("rsync-tls", 1.0)])
            self.assertEqual(verdict["ok"], ok)
            self.assertAlmostEqual(verdict["reached"], 1 / own)

    def test_best_peer_is_the_tables(self):
        target = Target("W1", "tls", least=1.4)
        verdict, = self.judge(target, [line("volferry", 1.0, best_peer="b"), line("a", 9.0), line("b", 1.5)])
        self.assertEqual((verdict["peer"], verdict["ok"]), ("b", True))

    def test_not_covered(self):
        target = Target("W1", "tls", peer="rsync-tls", least=1.0)
        self.assertEqual(self.judge(target, [line("volferry", 1.0)]), [])
        self.assertEqual(self.judge(target, [line("rsync-tls", 1.0)]), [])
        self.assertEqual(self.judge(target, [line("volferry", 1.0, leg="ssh"), line("rsync-tls", 1.0)]), [])

    def test_failed_runs_are_no_yardstick(self):
        target = Target("W1", "tls", peer="rsync-tls", least=1.0)
        failed = line("rsync-tls", 1.0)
        del failed["wall_s"]
        self.assertEqual(self.judge(target, [line("volferry", 1.0), failed]), [])

    def test_wire(self):
        target = Target("W5", "tls", kind="wire", changed=1.2, extra=1000)
        facts = [{"workload": "W5", "changed": 10_000}]
        for down, ok in ((100, True), (101, False)):
            own = line("volferry", 1.0, "W5", wire_up=12_900, wire_down=down)
            verdict, = self.judge(target, [own], facts=facts)
            self.assertEqual(verdict["ok"], ok)
        self.assertEqual(self.judge(target, [line("volferry", 1.0, "W5")], facts=facts), [])

    def test_link(self):
        target = Target("W10c", "tls", kind="link", least=0.95)
        facts = [{"workload": "W10c", "bytes": 125_000_000}]
        for wall, ok in ((1.05, True), (1.06, False)):
            verdict, = self.judge(target, [line("volferry", wall, "W10c")], facts=facts)
            self.assertEqual(verdict["ok"], ok)

    def test_threads_are_judged_by_their_own_line(self):
        target = Target("W1", "tls", peer="rsync-tls", least=2.5)
        table = [line("volferry", 0.1), line("volferry[threads]", 0.49), line("rsync-tls", 1.0)]
        verdict, = self.judge(target, table, "threads")
        self.assertEqual((verdict["contender"], verdict["wanted"], verdict["ok"]),
                         ("volferry[threads]", 2.0, True))

    def test_every_target_names_a_workload_and_leg(self):
        known = {workload.key: workload for workload in workloads.ALL}
        for target in targets.ALL:
            self.assertIn(target.leg, known[target.workload].legs)
            self.assertEqual(target.kind == "link", target.least == 0.95)


class BesideAuto(unittest.TestCase):

    def test_within_20_percent(self):
        table = [line("volferry", 0.8), line("volferry[threads]", 1.0),
                 line("volferry-inplace", 0.79), line("volferry-inplace[threads]", 1.0),
                 line("rsync-tls", 1.0)]
        found = targets.beside_auto(table, "threads")
        self.assertEqual([(item["contender"], item["ok"]) for item in found],
                         [("volferry", True), ("volferry-inplace", False)])


if __name__ == "__main__":
    unittest.main()
