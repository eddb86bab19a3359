#!/usr/bin/env python3
"""A picture of the rows that `scripts/bench.sh --json FILE` wrote: chart.py FILE OUT.svg

Each row is a bar from 1, where both sides are as fast: to the right ours is faster, to the left the peer. A stroke
marks the bound that the row has to reach. The axis is logarithmic.
"""

import html
import json
import math
import sys

NAMES, BARS, LINE = 330, 470, 22
TOP, LEAST = 46, 0.5
OURS, THEIRS = "#2f7ed8", "#c9743a"
STYLE = """<style>
text { fill: #333 } .ground { fill: #fff } .grid { stroke: #ddd } .bound { stroke: #222; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #ccc } .ground { fill: #0d1117 } .grid { stroke: #333 } .bound { stroke: #eee }
}
</style>"""


def draw(rows):
    """The SVG text of rows with `name`, `ratio` and `bound`."""
    most = max(2.0, *(row["ratio"] for row in rows))
    span = math.log(most * 1.5 / LEAST)

    def x(ratio):
        return NAMES + BARS * math.log(max(ratio, LEAST) / LEAST) / span

    width, height = NAMES + BARS + 20, TOP + LINE * len(rows) + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        STYLE,
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text x="10" y="16" font-weight="bold">How many times faster than the peer</text>',
        f'<rect x="{NAMES + 255}" y="6" width="12" height="12" fill="{OURS}"/>',
        f'<text x="{NAMES + 271}" y="16">faster</text>',
        f'<rect x="{NAMES + 320}" y="6" width="12" height="12" fill="{THEIRS}"/>',
        f'<text x="{NAMES + 336}" y="16">slower</text>',
        f'<line class="bound" x1="{NAMES + 392}" x2="{NAMES + 392}" y1="4" y2="20"/>',
        f'<text x="{NAMES + 400}" y="16">required</text>',
    ]
    for tick in (0.5, 1, 2, 5, 10, 20, 50, 100):
        if tick <= most * 1.5:
            at = x(tick)
            out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{height - 8}" class="grid"/>')
            out.append(f'<text x="{at:.1f}" y="{TOP - 12}" text-anchor="middle">{tick:g}</text>')
    for i, row in enumerate(rows):
        y, ratio, bound = TOP + LINE * i, row["ratio"], row["bound"]
        left, right = sorted((x(1.0), x(ratio)))
        out.append(f'<text x="{NAMES - 10}" y="{y + 14}" text-anchor="end">{html.escape(row["name"])}</text>')
        out.append(
            f'<rect x="{left:.1f}" y="{y + 3}" width="{right - left:.1f}" height="{LINE - 8}" '
            f'fill="{OURS if ratio >= 1 else THEIRS}"/>'
        )
        out.append(f'<text x="{right + 5:.1f}" y="{y + 14}">{ratio:.2f}</text>')
        if bound is not None:
            out.append(
                f'<line x1="{x(bound):.1f}" x2="{x(bound):.1f}" y1="{y}" y2="{y + LINE - 2}" '
                f'class="bound"/>'
            )
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: scripts/chart.py FILE OUT.svg, where FILE is what scripts/bench.sh --json wrote")
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)
    if not rows:
        sys.exit(f"{sys.argv[1]} has no rows")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(rows))


if __name__ == "__main__":
    main()
