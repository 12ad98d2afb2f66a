# SPDX-License-Identifier: Apache-2.0
"""The comparison as a picture: for each workload how many times longer each peer takes, as an SVG that needs
nothing else and is readable on light and dark pages.

The scale is logarithmic, and volferry is the line at 1: a bar to the right of it is a slower peer, one to the
left a faster peer. Each peer stands beside the line of volferry's that does the same: in place beside in
place, durable beside durable.
"""

import math
from html import escape

LEG_TITLES = {"local": "On one machine", "tls": "Over TLS", "ssh": "Over ssh"}
COLUMNS = (("local",), ("tls", "ssh"))
COLUMN_WIDTH = 470
LABEL_WIDTH = 120
VALUE_WIDTH = 100
GAP = 24
ROW = 17
BAR = 11
TITLE = 24
HEAD = 66
LEG = 34
AXIS = 34
TICKS = {0.125: "⅛", 0.25: "¼", 0.5: "½"} | {2 ** power: str(2 ** power) for power in range(10)}

STYLE = """
  svg { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  .page { fill: #ffffff; }
  .head { fill: #1f2328; font-size: 18px; font-weight: 600; }
  .leg { fill: #1f2328; font-size: 14px; font-weight: 600; }
  .title { fill: #1f2328; font-weight: 600; }
  .text { fill: #59636e; }
  .value { stroke: #ffffff; stroke-width: 4px; paint-order: stroke; }
  .slower { fill: #2f81c7; }
  .faster { fill: #d1692a; }
  .one { stroke: #1f2328; stroke-width: 1.5; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    .head, .leg, .title { fill: #f0f6fc; }
    .text { fill: #9aa4af; }
    .value { stroke: #0d1117; }
    .slower { fill: #58a6e0; }
    .faster { fill: #f0883e; }
    .one { stroke: #f0f6fc; }
    .grid { stroke: #30363d; }
  }
"""


def groups(table, titles, leg, backend=""):
    """[(title, volferry's seconds, [(peer, seconds, times volferry's)])] of one leg, factor 1."""
    walls = {}
    for entry in table:
        if entry["leg"] == leg and entry["factor"] == 1 and "wall_s" in entry:
            walls.setdefault(entry["workload"], {})[entry["contender"]] = entry
    found = []
    for workload, entries in walls.items():
        own = entries.get("volferry" + backend)
        if not own:
            continue
        bars = []
        for entry in entries.values():
            beside = entries.get(counterpart(entry) + backend)
            if entry["peer"] and beside:
                bars.append((entry["contender"], entry["wall_s"], entry["wall_s"] / beside["wall_s"]))
        if bars:
            found.append((titles[workload], own["wall_s"], sorted(bars, key=lambda bar: bar[2])))
    return found


def counterpart(peer):
    """The line of volferry's that does what the peer does."""
    if peer["durable"]:
        return "volferry-durable"
    return "volferry-inplace" if peer["contender"].endswith("-inplace") else "volferry"


def svg(result, backend=""):
    """The picture of a result of bench/compare --json: columns of legs beside each other."""
    legs = {leg: groups(result["table"], result["titles"], leg, backend) for leg in LEG_TITLES}
    columns = [[leg for leg in column if legs[leg]] for column in COLUMNS]
    columns = [column for column in columns if column]
    times = [bar[2] for parts in legs.values() for _, _, bars in parts for bar in bars] or [1]
    scale = Scale(min(min(times), 0.9), max(max(times), 2))
    width = max(GAP + len(columns) * (COLUMN_WIDTH + GAP), 800)
    height = HEAD + GAP + max((sum(_height(legs[leg]) for leg in column) for column in columns), default=0)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" role="img" aria-label="Times of other programs beside volferry">',
             f"<style>{STYLE}</style>", f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
             _text("head", GAP, 32, "How many times longer other programs take than volferry"),
             _text("text", GAP, 54, _caption(result))]
    for index, column in enumerate(columns):
        top = HEAD
        for leg in column:
            lines += _leg(GAP + index * (COLUMN_WIDTH + GAP), top, leg, legs[leg], scale)
            top += _height(legs[leg])
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


class Scale:
    """Places on a logarithmic axis from `least` to `most`."""

    def __init__(self, least, most):
        self._least = math.log(least)
        self._span = math.log(most) - self._least
        self.ticks = [tick for tick in TICKS if least <= tick <= most]

    def place(self, times):
        room = COLUMN_WIDTH - LABEL_WIDTH - VALUE_WIDTH
        return LABEL_WIDTH + room * (math.log(times) - self._least) / self._span


def _caption(result):
    machine = result["machine"]
    sizes = "" if result["scale"] == 1 else f", scale {result['scale']:g}"
    return (f"Medians of {result['runs']} interleaved runs, {'cold' if result['cold'] else 'warm'} cache"
            f"{sizes}; Linux {machine['kernel']}, {machine['cores']} cores of {machine['cpu']}. "
            "Logarithmic scale; faster ones to the left.")


def _height(parts):
    """Of one leg, with its heading and its axis."""
    return LEG + sum(TITLE + ROW * len(bars) for _, _, bars in parts) + AXIS


def _leg(left, top, leg, parts, scale):
    begin, end = top + LEG, top + _height(parts) - AXIS
    lines = [_text("leg", left, top + 22, LEG_TITLES[leg])]
    for tick in scale.ticks:
        place = left + scale.place(tick)
        lines.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{place:.1f}" y1="{begin}" '
                     f'x2="{place:.1f}" y2="{end + 4}"/>')
        lines.append(_text("text", place, end + 20, TICKS[tick] + "×", "middle"))
    row = begin
    for title, own, bars in parts:
        # On a strip of the page's colour, as the grid would run through the words.
        lines.append(f'<rect class="page" x="{left}" y="{row}" width="{COLUMN_WIDTH}" height="{TITLE - 3}"/>')
        lines.append(_text("title", left, row + 16, f"{title}: volferry {_seconds(own)}"))
        row += TITLE
        for bar in bars:
            lines += _bar(left, row, bar, scale)
            row += ROW
    return lines


def _bar(left, top, bar, scale):
    peer, wall, times = bar
    start, stop = sorted((scale.place(1), scale.place(times)))
    return [_text("text", left + LABEL_WIDTH - 8, top + BAR, peer, "end"),
            f'<rect class="{"slower" if times >= 1 else "faster"}" x="{left + start:.1f}" y="{top + 1}" '
            f'width="{max(1.0, stop - start):.1f}" height="{BAR}" rx="2"/>',
            _text("text value", left + stop + 6, top + BAR, f"{_times(times)}  {_seconds(wall)}")]


def _times(value):
    return f"{value:.{2 if value < 1 else 1 if value < 10 else 0}f}×"


def _seconds(value):
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.0f} ms"


def _text(kind, x, y, text, anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
