# SPDX-License-Identifier: Apache-2.0
"""Picture and tables of a small result."""

import unittest
from xml.etree import ElementTree

from compare_support import chart, markdown


def line(contender, wall_s, leg="tls", workload="W1", factor=1, durable=False):
    return {"workload": workload, "leg": leg, "contender": contender, "factor": factor, "wall_s": wall_s,
            "peer": not contender.startswith("volferry"), "durable": durable, "wall_min_s": wall_s,
            "wall_max_s": wall_s, "cpu_s": 1.0, "peak_mib": 20.0, "wire_up": 1e6, "wire_down": 2e6,
            "ratio": 2.0, "best_peer": "rsync-tls"}


TABLE = [line("volferry", 1.0), line("volferry-durable", 2.0, durable=True), line("volferry-inplace", 0.5),
         line("rsync-tls", 2.5), line("rsync-tls-inplace", 2.0), line("peer+sync", 1.0, durable=True),
         line("volferry", 7.0, factor=4), line("rsync-tls", 1.0, workload="W2")]

RESULT = {"table": TABLE, "titles": {"W1": "files < 1 GiB & more", "W2": "other"}, "runs": 5, "scale": 1,
          "cold": False, "started": 1_800_000_000, "place": "ext4",
          "machine": {"kernel": "6.1", "cores": 2, "cpu": "Some CPU", "memory_gib": 8, "rsync": "rsync 3"},
          "targets": {"auto": [{"workload": "W1", "leg": "tls", "contender": "volferry", "kind": "peer",
                                "peer": "rsync-tls", "wanted": 3.0, "reached": 2.5, "ok": False}],
                      "threads": []},
          "beside_auto": [], "series": [], "series_scale": 1,
          "bounds": [{"workload": "W1", "leg": "tls", "contender": "volferry", "bound_s": 0.8,
                      "by": "cores", "share": 0.8}],
          "limits": {"stat": {"rate": 1e6, "unit": "/s", "how": "find"}}}


class Chart(unittest.TestCase):

    def test_each_peer_beside_its_counterpart(self):
        (title, own, bars), = chart.groups(TABLE, RESULT["titles"], "tls")
        self.assertEqual((title, own), ("files < 1 GiB & more", 1.0))
        self.assertEqual(bars, [("peer+sync", 1.0, 0.5), ("rsync-tls", 2.5, 2.5),
                                ("rsync-tls-inplace", 2.0, 4.0)])

    def test_svg(self):
        root = ElementTree.fromstring(chart.svg(RESULT))
        space = "{http://www.w3.org/2000/svg}"
        bars = [item for item in root.iter(space + "rect") if item.get("class") in ("slower", "faster")]
        self.assertEqual([bar.get("class") for bar in bars], ["faster", "slower", "slower"])
        width = float(root.get("width"))
        for bar in bars:
            self.assertLess(float(bar.get("x")) + float(bar.get("width")), width)
        texts = [item.text for item in root.iter(space + "text")]
        self.assertIn("files < 1 GiB & more: volferry 1.00 s", texts)
        self.assertIn("2.5×  2.50 s", texts)

    def test_scale_is_logarithmic(self):
        scale = chart.Scale(0.5, 8)
        self.assertAlmostEqual(scale.place(2) - scale.place(1), scale.place(8) - scale.place(4))
        self.assertEqual(scale.ticks, [0.5, 1, 2, 4, 8])

    def test_nothing_to_show(self):
        ElementTree.fromstring(chart.svg(RESULT | {"table": []}))


class Markdown(unittest.TestCase):

    def test_into(self):
        document = f"before\n{markdown.BEGIN}\nold\n{markdown.END}\nafter\n"
        once = markdown.into(document, "new")
        self.assertEqual(once, f"before\n{markdown.BEGIN}\n\nnew\n\n{markdown.END}\nafter\n")
        self.assertEqual(markdown.into(once, "new"), once)

    def test_marks_must_be_there(self):
        with self.assertRaises(ValueError):
            markdown.into("no marks", "new")

    def test_figures(self):
        text = markdown.figures(RESULT)
        self.assertIn("Measured 2027-01-15", text)
        self.assertIn("| tls | **volferry** | 1.00 |  |", text)
        self.assertIn("| tls | rsync-tls | 2.50 | 1.00 |", text)
        self.assertIn("| W1 | tls | volferry | 1.000 | 1.00–1.00 | 1.00 | 20 | 3.00 | 2.00× rsync-tls | "
                      "0.80 (cores) | 80 % |", text)
        self.assertIn("2.50x rsync-tls, wanted 3.00x | **below** |", text)
        self.assertIn("| stat | 1,000,000 /s | find |", text)
        self.assertNotIn("threads", text)
        self.assertNotIn("7.00", text)

    def test_series_of_another_run(self):
        points = [{"factor": factor, "us_per_file": cost, "peak_mib": 20}
                  for factor, cost in ((1, 30), (4, 31.5))]
        other = {"scale": 0.25, "series": [{"workload": "W2", "leg": "tls", "contender": "volferry",
                                            "unit": "file", "spread": 0.05, "points": points}]}
        text = markdown.figures(markdown.with_series(RESULT, other))
        self.assertIn("(×1 is scale 0.25)", text)
        self.assertIn("| W2 | tls | volferry | µs a file | ×1: 30, ×4: 31.5 | 5 % | 20, 20 |", text)


if __name__ == "__main__":
    unittest.main()
