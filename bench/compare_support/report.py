# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios and the printed table."""

import statistics


def summarize(rows):
    """One dict per (factor, workload, leg, contender) from single runs, leg after leg, otherwise in order of
    first appearance.

    `ratio` is the best peer's median of the same leg and durability divided by the contender's own:
    above 1 it is faster than every peer.
    """
    groups = {}
    for row in sorted(rows, key=_place(rows)):
        key = (row["factor"], row["workload"], row["leg"], row["contender"])
        groups.setdefault(key, []).append(row)
    table = []
    for (factor, workload, leg, contender), runs in groups.items():
        good = [run for run in runs if not run["error"]]
        entry = {"factor": factor, "workload": workload, "leg": leg, "contender": contender,
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
                 all(other[key] == entry[key] for key in ("factor", "workload", "leg", "durable"))]
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
             for entry in table if entry["factor"] == 1}
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
        place = (entry["factor"], entry["workload"], entry["leg"])
        if place != shown:
            shown = place
            larger = f" x {entry['factor']:g}" if entry["factor"] != 1 else ""
            out.write(f"\n{titles[entry['workload']]}{larger} [{entry['leg']}]\n")
            out.write(f"  {'':27}{'median s':>9}{'min-max':>14}{'CPU s':>8}{'peak MiB':>10}"
                      f"{'wire MB':>10}  ratio to best peer\n")
        if "wall_s" not in entry:
            out.write(f"  {entry['contender']:27}failed: {_one_line(entry['error'])}\n")
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
        out.write(f"  {entry['contender']:27}{entry['wall_s']:9.3f}{spread:>14}{entry['cpu_s']:8.2f}"
                  f"{entry['peak_mib']:10.1f}{wire:>10}  {ratio}{failed}\n")


def print_degenerate(verdicts, out):
    if verdicts:
        out.write("\nhard contents beside random data of that size (limit on the ratio of times)\n")
    for item in verdicts:
        out.write(f"  {item['workload']} {item['leg']:6}{item['contender']:27}{item['times']:6.2f}x of "
                  f"{item['beside']}, limit {item['limit']:.0f}: {'ok' if item['ok'] else 'TOO SLOW'}\n")


def print_verdicts(verdicts, backend, scale, out):
    """Which targets were reached; sizes other than 1 only tell that the comparison works."""
    if verdicts:
        out.write(f"\ntargets with --io {backend}" +
                  (", within 20 %" if backend != "auto" else "") +
                  (f" (set for scale 1, this was {scale:g})" if scale != 1 else "") + "\n")
    for item in verdicts:
        out.write(f"  {item['workload']:5} {item['leg']:6}{item['contender']:27}{target_text(item):44}"
                  f"{'ok' if item['ok'] else 'BELOW'}\n")


def target_text(verdict):
    """What was wanted and what was reached, such as "2.31x rsync-tls, wanted 2.5x"."""
    wanted, reached = verdict["wanted"], verdict["reached"]
    if verdict["kind"] == "peer":
        return f"{reached:.2f}x {verdict['peer']}, wanted {wanted:.2f}x"
    if verdict["kind"] == "link":
        return f"{reached * 100:.0f} % of the link, wanted {wanted * 100:.0f} %"
    return f"{reached / 1e6:.2f} MB on the wire, at most {wanted / 1e6:.2f}"


def print_beside_auto(lines, out):
    if lines:
        out.write("\nother backends beside auto (time with auto / time with it)\n")
    for item in lines:
        out.write(f"  {item['workload']:5} {item['leg']:6}{item['contender']:27}"
                  f"{item['backend']:10}{item['auto_s']:8.3f} s {item['other_s']:8.3f} s "
                  f"{item['ratio']:6.2f}  {'ok' if item['ok'] else 'MORE THAN 20 % SLOWER'}\n")


def print_limits(limits, bounds, out):
    """The machine's limits, and how near volferry came to what they allow."""
    if limits:
        out.write("\nlimits of this machine\n")
    for name, item in limits.items():
        rate = f"{item['rate'] / 1e6:.0f} MB/s" if item["unit"] == "B/s" else f"{item['rate']:.0f} /s"
        out.write(f"  {name:24}{rate:>14}  {item['how']}\n")
    if bounds:
        out.write("\nthe least time these limits allow, and how much of that speed was reached\n")
    for item in bounds:
        out.write(f"  {item['workload']:5} {item['leg']:6}{item['contender']:27}{item['bound_s']:8.3f} s by "
                  f"{item['by']:6}{item['wall_s']:8.3f} s {item['share'] * 100:5.0f} %\n")


def print_series(lines, out):
    if lines:
        out.write("\ncost of a unit as the size grows (spread: largest over smallest, wanted within 15 %)\n")
    for item in lines:
        verdict = "ok" if item["ok"] else "GROWS" if item["growth"] > 0 else "falls"
        out.write(f"  {item['workload']:5} {item['leg']:6}{item['contender']:27}spread "
                  f"{item['spread'] * 100:.0f} % by {item['unit']}: {verdict}\n")
        for point in item["points"]:
            out.write(f"    x {point['factor']:<5g}{point['wall_s']:9.3f} s"
                      f"{point['ns_per_byte']:10.3f} ns/byte{point['us_per_file']:14.2f} us/file"
                      f"{point['peak_mib']:9.1f} MiB peak\n")


def _place(rows):
    """A key that keeps a workload's legs together."""
    order = {}
    for row in rows:
        order.setdefault((row["factor"], row["workload"]), len(order))
    return lambda row: (order[row["factor"], row["workload"]], row["leg"])


def _median(runs, field):
    values = [run[field] for run in runs if run.get(field) is not None]
    return statistics.median(values) if values else None


def _one_line(text):
    return " | ".join((text or "unknown").strip().splitlines())[:300]
