# SPDX-License-Identifier: Apache-2.0
"""Series: costs of a unit and their spread."""

import unittest

from compare_support import series


def entry(factor, wall_s):
    return {"workload": "W", "leg": "tls", "contender": "volferry", "factor": factor, "wall_s": wall_s,
            "peak_mib": 20.0}


def fact(factor, size, files):
    return {"workload": "W", "factor": factor, "bytes": size, "files": files}


class Series(unittest.TestCase):

    def test_large_files_count_by_byte(self):
        found, = series.series([entry(1, 1.0), entry(4, 4.4)], [fact(1, 10 << 20, 1), fact(4, 40 << 20, 1)])
        self.assertEqual((found["unit"], found["ok"]), ("byte", True))
        self.assertAlmostEqual(found["spread"], 0.1)

    def test_small_files_count_by_file(self):
        found, = series.series([entry(4, 4.0), entry(1, 2.0)], [fact(1, 1000, 100), fact(4, 4000, 400)])
        self.assertEqual((found["unit"], found["ok"]), ("file", False))
        self.assertAlmostEqual(found["spread"], 1.0)
        self.assertAlmostEqual(found["growth"], -0.5)
        self.assertEqual([point["factor"] for point in found["points"]], [1, 4])
        self.assertAlmostEqual(found["points"][0]["us_per_file"], 20_000)

    def test_one_size_is_no_series(self):
        self.assertEqual(series.series([entry(1, 1.0)], [fact(1, 1, 1)]), [])

    def test_failed_runs_do_not_count(self):
        failed = entry(4, 1.0)
        del failed["wall_s"]
        self.assertEqual(series.series([entry(1, 1.0), failed], [fact(1, 1, 1), fact(4, 4, 4)]), [])


if __name__ == "__main__":
    unittest.main()
