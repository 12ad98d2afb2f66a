# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios and the printed table."""

import statistics


def summarize(rows):
    """One dict per (workload, leg, contender) from single runs, in order of first appearance.

    `ratio` is the best peer's median of the same leg and durability divided by the contender's own:
    above 1 it is faster than every peer.
    """
    groups = {}
    for row in rows:
        groups.setdefault((row["workload"], row["leg"], row["contender"]), []).append(row)
    table = []
    for (workload, leg, contender), runs in groups.items():
        good = [run for run in runs if not run["error"]]
        entry = {"workload": workload, "leg": leg, "contender": contender,
                 "peer": runs[0]["peer"], "durable": runs[0]["durable"],
                 "runs": len(runs), "failed": len(runs) - len(good),
                 "error": next((run["error"] for run in runs if run["error"]), None)}
        if good:
            entry.update(
                wall_s=_median(good, "wall_s"), wall_min_s=min(run["wall_s"] for run in good),
                wall_max_s=max(run["wall_s"] for run in good), cpu_s=_median(good, "cpu_s"),
                settle_s=_median(good, "settle_s"), peak_mib=_median(good, "peak_mib"),
                wire_up=_median(good, "wire_up"), wire_down=_median(good, "wire_down"))
        table.append(entry)
    for entry in table:
        peers = [other for other in table if other["peer"] and "wall_s" in other and
                 (other["workload"], other["leg"], other["durable"]) ==
                 (entry["workload"], entry["leg"], entry["durable"])]
        if peers and "wall_s" in entry:
            best = min(peers, key=lambda other: other["wall_s"])
            entry["best_peer"] = best["contender"]
            entry["ratio"] = best["wall_s"] / entry["wall_s"]
            entry["ratios"] = {other["contender"]: other["wall_s"] / entry["wall_s"]
                               for other in peers}
    return table


def degenerate(table, chosen):
    """How the hard contents compare with random data of their size: own medians only."""
    walls = {(entry["workload"], entry["leg"], entry["contender"]): entry.get("wall_s")
             for entry in table}
    verdicts = []
    for workload in chosen:
        if not workload.beside:
            continue
        for (key, leg, contender), wall in walls.items():
            yardstick = walls.get((workload.beside, leg, contender))
            if key == workload.key and wall and yardstick:
                verdicts.append({"workload": key, "leg": leg, "contender": contender,
                                 "beside": workload.beside, "times": wall / yardstick,
                                 "limit": workload.factor,
                                 "ok": wall / yardstick <= workload.factor})
    return verdicts


def print_table(table, chosen, out):
    titles = {workload.key: f"{workload.key} {workload.name}: {workload.title}" for workload in chosen}
    shown = None
    for entry in table:
        place = (entry["workload"], entry["leg"])
        if place != shown:
            shown = place
            out.write(f"\n{titles[entry['workload']]} [{entry['leg']}]\n")
            out.write(f"  {'':22}{'median s':>9}{'min-max':>14}{'CPU s':>8}{'peak MiB':>10}"
                      f"{'wire MB':>10}  ratio to best peer\n")
        if "wall_s" not in entry:
            out.write(f"  {entry['contender']:22}failed: {_one_line(entry['error'])}\n")
            continue
        spread = f"{entry['wall_min_s']:.2f}-{entry['wall_max_s']:.2f}"
        wire = "-"
        if entry["wire_up"] is not None:
            wire = f"{(entry['wire_up'] + entry['wire_down']) / 1e6:.2f}"
        ratio = ""
        if "ratio" in entry and not entry["peer"]:
            ratio = f"{entry['ratio']:.2f}x {entry['best_peer']}"
        elif entry.get("best_peer") == entry["contender"]:
            ratio = "best peer"
        failed = f"  {entry['failed']} of {entry['runs']} FAILED" if entry["failed"] else ""
        out.write(f"  {entry['contender']:22}{entry['wall_s']:9.3f}{spread:>14}{entry['cpu_s']:8.2f}"
                  f"{entry['peak_mib']:10.1f}{wire:>10}  {ratio}{failed}\n")


def print_degenerate(verdicts, out):
    if verdicts:
        out.write("\nhard contents beside random data of that size (limit on the ratio of times)\n")
    for item in verdicts:
        out.write(f"  {item['workload']} {item['leg']:6}{item['contender']:18}{item['times']:6.2f}x of "
                  f"{item['beside']}, limit {item['limit']:.0f}: {'ok' if item['ok'] else 'TOO SLOW'}\n")


def _median(runs, field):
    values = [run[field] for run in runs if run.get(field) is not None]
    return statistics.median(values) if values else None


def _one_line(text):
    return " | ".join((text or "unknown").strip().splitlines())[:300]
