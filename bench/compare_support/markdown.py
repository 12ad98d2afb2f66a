# SPDX-License-Identifier: Apache-2.0
"""The comparison as Markdown: the tables of docs/performance.md."""

import datetime

from .report import target_text

BEGIN, END = "<!-- figures: made by bench/chart -->", "<!-- end of figures -->"
PROGRAMS = ("volferry", "rsync", "ssh", "stunnel", "cp", "tar", "rclone")


def into(document, figures):
    """The document with the text between its two marks replaced. Raises ValueError where they are missing."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(END) < document.index(BEGIN):
        raise ValueError(f"the document needs one line '{BEGIN}' and below it one '{END}'")
    before, _, rest = document.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{figures.strip()}\n\n{END}{rest.partition(END)[2]}"


def with_series(result, other):
    """The result with the series of another run, as that one needs a smaller scale to have room."""
    return result | {"series": other["series"], "series_scale": other["scale"]}


def figures(result):
    """All tables that the result has something for."""
    parts = [_head(result), _times(result), _lines(result)]
    for backend, verdicts in result["targets"].items():
        parts.append(_targets(backend, verdicts))
    parts += [_beside_auto(result["beside_auto"]), _limits(result["limits"]),
              _series(result["series"], result["series_scale"])]
    return "\n\n".join(part for part in parts if part)


def table(heads, rows):
    """A Markdown table; columns whose head starts with ">" are aligned to the right."""
    if not rows:
        return ""
    names = [head.lstrip(">") for head in heads]
    rule = ["--:" if head.startswith(">") else "---" for head in heads]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [names, rule, *rows])


def _head(result):
    machine = result["machine"]
    day = datetime.datetime.fromtimestamp(result["started"], datetime.timezone.utc).date()
    programs = "; ".join(machine[name] for name in PROGRAMS if machine.get(name))
    return (f"Measured {day}: kernel {machine['kernel']}, {machine['cores']} cores of {machine['cpu']}, "
            f"{machine['memory_gib']} GiB; {programs}. Medians of {result['runs']} interleaved rounds at "
            f"scale {result['scale']:g}, {'cold' if result['cold'] else 'warm'} cache, on {result['place']}.")


def _times(result):
    """Seconds of everybody: a column a workload."""
    entries = [entry for entry in result["table"] if entry["factor"] == 1]
    keys = list(dict.fromkeys(entry["workload"] for entry in entries))
    walls = {(entry["leg"], entry["contender"], entry["workload"]): entry for entry in entries}
    rows = []
    for leg in ("local", "ssh", "tls"):
        for contender in dict.fromkeys(entry["contender"] for entry in entries if entry["leg"] == leg):
            cells = [_wall(walls.get((leg, contender, key))) for key in keys]
            rows.append([leg, _own(contender)] + cells)
    titles = "; ".join(f"{key} {result['titles'][key]}" for key in keys)
    return ("### Seconds\n\n" + table(["leg", "program"] + [">" + key for key in keys], rows) +
            f"\n\n{titles}.")


def _wall(entry):
    if not entry:
        return ""
    return f"{entry['wall_s']:.2f}" if "wall_s" in entry else "failed"


def _own(contender):
    return f"**{contender}**" if contender.startswith("volferry") else contender


def _lines(result):
    """What volferry's own lines cost, and how near they come to what the machine allows."""
    bounds = {(item["workload"], item["leg"], item["contender"]): item for item in result["bounds"]}
    rows = []
    for entry in result["table"]:
        if entry["peer"] or entry["factor"] != 1 or "wall_s" not in entry:
            continue
        bound = bounds.get((entry["workload"], entry["leg"], entry["contender"]))
        wire = "" if entry["wire_up"] is None else f"{(entry['wire_up'] + entry['wire_down']) / 1e6:.2f}"
        rows.append([entry["workload"], entry["leg"], entry["contender"], f"{entry['wall_s']:.3f}",
                     f"{entry['wall_min_s']:.2f}–{entry['wall_max_s']:.2f}", f"{entry['cpu_s']:.2f}",
                     f"{entry['peak_mib']:.0f}", wire,
                     f"{entry['ratio']:.2f}× {entry['best_peer']}" if "ratio" in entry else "",
                     f"{bound['bound_s']:.2f} ({bound['by']})" if bound else "",
                     f"{bound['share'] * 100:.0f} %" if bound else ""])
    heads = ["work", "leg", "program", ">s", ">min–max", ">CPU s", ">peak MiB", ">wire MB", "best peer",
             ">least s", ">reached"]
    return ("### What it costs\n\n" + table(heads, rows)) if rows else ""


def _targets(backend, verdicts):
    rows = [[item["workload"], item["leg"], item["contender"], target_text(item),
             "ok" if item["ok"] else "**below**"] for item in verdicts]
    eased = "" if backend == "auto" else ", within 20 %"
    title = f"### Targets with `--io {backend}`{eased}\n\n"
    return (title + table(["work", "leg", "program", "reached", ""], rows)) if rows else ""


def _beside_auto(lines):
    rows = [[item["workload"], item["leg"], item["contender"], item["backend"], f"{item['auto_s']:.3f}",
             f"{item['other_s']:.3f}", f"{item['ratio']:.2f}"] for item in lines]
    heads = ["work", "leg", "program", "backend", ">auto s", ">its s", ">auto / its"]
    return ("### Other backends beside auto\n\n" + table(heads, rows)) if rows else ""


def _limits(limits):
    rows = [[name, f"{item['rate'] / 1e6:.0f} MB/s" if item["unit"] == "B/s" else f"{item['rate']:,.0f} /s",
             item["how"]] for name, item in limits.items()]
    return ("### Limits of the machine\n\n" + table(["what", ">rate", "how"], rows)) if rows else ""


def _series(lines, scale):
    rows = []
    for item in lines:
        cost = "ns_per_byte" if item["unit"] == "byte" else "us_per_file"
        points = ", ".join(f"×{point['factor']:g}: {point[cost]:.3g}" for point in item["points"])
        peaks = ", ".join(f"{point['peak_mib']:.0f}" for point in item["points"])
        rows.append([item["workload"], item["leg"], item["contender"],
                     "ns a byte" if item["unit"] == "byte" else "µs a file", points,
                     f"{item['spread'] * 100:.0f} %", peaks])
    heads = ["work", "leg", "program", "unit", "cost by size", ">spread", "peak MiB"]
    return (f"### Cost as the size grows (×1 is scale {scale:g})\n\n" + table(heads, rows)) if rows else ""
