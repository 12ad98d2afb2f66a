# SPDX-License-Identifier: Apache-2.0
"""Does cost grow with size and no faster? The same workload at several sizes: time per byte and per file
beside each other."""

# Within 15 % of each other.
MOST_SPREAD = 0.15


def series(table, facts):
    """One dict per (workload, leg, contender) that ran at more than one size.

    `spread` is the largest cost of a unit divided by the smallest, less one, and `growth` the largest size's
    divided by the smallest size's, less one: below 0 where start-up still counts. The unit is the byte where
    there is at least 1 MiB a file, and the file elsewhere.
    """
    sizes = {(item["workload"], item["factor"]): item for item in facts}
    groups = {}
    for entry in table:
        if "wall_s" in entry:
            groups.setdefault((entry["workload"], entry["leg"], entry["contender"]), []).append(entry)
    found = []
    for (workload, leg, contender), entries in groups.items():
        if len(entries) < 2:
            continue
        points = [_point(entry, sizes[workload, entry["factor"]])
                  for entry in sorted(entries, key=lambda entry: entry["factor"])]
        by_byte = points[-1]["bytes"] >= points[-1]["files"] << 20
        costs = [point["ns_per_byte" if by_byte else "us_per_file"] for point in points]
        spread = max(costs) / min(costs) - 1
        found.append({"workload": workload, "leg": leg, "contender": contender, "points": points,
                      "unit": "byte" if by_byte else "file", "spread": spread,
                      "growth": costs[-1] / costs[0] - 1, "ok": spread <= MOST_SPREAD})
    return found


def _point(entry, size):
    return {"factor": entry["factor"], "bytes": size["bytes"], "files": size["files"],
            "wall_s": entry["wall_s"], "ns_per_byte": entry["wall_s"] * 1e9 / max(1, size["bytes"]),
            "us_per_file": entry["wall_s"] * 1e6 / max(1, size["files"]),
            "peak_mib": entry["peak_mib"]}
