#!/usr/bin/env python3
"""Makes tables, and with a second argument docs/scale.svg and the table of docs/scale.md, from the values of `scale`.

usage: tests/scale/page.py VALUES [MACHINE]
"""

import pathlib
import re
import sys

# A table each: heading, name of the size, and rows of curve, words, and whether the picture has it.
TABLES = [
    ("Event streams, each with its connection; half of them of sessions", "streams", [
        ("stream-kib", "KiB of memory for each, with its connection", False),
        ("request-us-among", "µs of processor time for a request among them", True),
        ("publish-us-each", "µs of processor time to send a change to one of them", True),
        ("wait-ms-publish", "ms of the longest request while a change is sent to all", True),
        ("kept-kib", "KiB that the allocator keeps when all have gone", False),
    ]),
    ("Requests in flight, each with its connection", "requests", [
        ("in-flight-us-among", "µs for a request among them", True),
        ("late-answer-us", "µs for a late answer", True),
    ]),
    ("Subscriptions of one session", "subscriptions", [
        ("subscribe-us", "µs for a `resources/subscribe`", True),
        ("update-us", "µs for a `tools/call` that publishes a change of one, and its notification", True),
    ]),
    ("Tools", "tools", [
        ("last-tool-us", "µs for a call of the last one", True),
        ("list-us-each-tool", "µs for `tools/list`, divided by the tools", True),
    ]),
    ("`resources/list` of the core through a window of 1 KiB", "resources", [
        ("window-us-each-resource", "µs for each", True),
    ]),
]
COLOURS = {"blocking": "#1f77b4", "smol": "#d62728", "core": "#2ca02c"}


def read(path):
    """Returns the values: curve, server, size."""
    values = {}
    for line in pathlib.Path(path).read_text().splitlines():
        curve, server, size, value = line.split("\t")
        values.setdefault(curve, {}).setdefault(server, {})[int(size)] = float(value)
    return values


def shown(value):
    """Returns a number with some three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tables(values):
    """Returns the tables in Markdown."""
    lines = []
    for heading, unit, rows in TABLES:
        of = values[rows[0][0]]
        sizes = sorted(next(iter(of.values())))
        lines += [f"**{heading}**", "", "| | server | " + " | ".join(f"{size:,} {unit}" for size in sizes) + " |"]
        lines.append("|---|---|" + "---:|" * len(sizes))
        for curve, words, _ in rows:
            for server, found in values[curve].items():
                lines.append(f"| {words} | {server} | " + " | ".join(shown(found[size]) for size in sizes) + " |")
                words = ""
        lines.append("")
    return "\n".join(lines)


def summary(values):
    """Returns the table of the page: each curve at its largest size. The picture has the smaller ones, and what only the core has."""
    lines = ["| | blocking | smol |", "|---|---:|---:|"]
    for heading, _, rows in TABLES:
        found = [(words, values[curve]) for curve, words, _ in rows if "smol" in values[curve]]
        if found:
            size = max(found[0][1]["smol"])
            lines.append(f"| **{heading}: {size:,}** | | |")
            lines += [f"| {words} | {shown(of['blocking'][size])} | {shown(of['smol'][size])} |" for words, of in found]
    return "\n".join(lines) + "\n"


def picture(values):
    """Returns the picture: a field for each curve, sizes on a logarithmic scale, values from 0."""
    curves = [(curve, words, unit) for _, unit, rows in TABLES for curve, words, inside in rows if inside]
    width, height, columns = 360, 190, 3
    rows = (len(curves) + columns - 1) // columns
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * columns} {height * rows}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width * columns}" height="{height * rows}" fill="white"/>',
    ]
    for number, (curve, words, unit) in enumerate(curves):
        left, top = number % columns * width + 46, number // columns * height + 40
        wide, high = width - 70, height - 80
        found = values[curve]
        sizes = sorted(next(iter(found.values())))
        most = max(max(of.values()) for of in found.values()) * 1.25
        title = words.replace("`", "")
        cut = title if len(title) <= 58 else title[:title.rfind(" ", 0, 58)] + " …"
        svg.append(f'<text x="{left - 36}" y="{top - 14}">{cut}</text>')
        svg.append(f'<path d="M{left} {top}v{high}h{wide}" fill="none" stroke="#888"/>')
        for share in (0.0, 0.5, 1.0):
            y = top + high - share * high
            svg.append(f'<text x="{left - 5}" y="{y + 4:.0f}" text-anchor="end" fill="#555">{shown(most * share)}</text>')
        for place, size in enumerate(sizes):
            x = left + wide * (0.08 + 0.84 * place / (len(sizes) - 1))
            svg.append(f'<text x="{x:.0f}" y="{top + high + 15}" text-anchor="middle" fill="#555">{size:,}</text>')
        svg.append(f'<text x="{left + wide}" y="{top + high + 29}" text-anchor="end" fill="#555">{unit}</text>')
        for server, of in found.items():
            points = [(left + wide * (0.08 + 0.84 * place / (len(sizes) - 1)), top + high - of[size] / most * high)
                      for place, size in enumerate(sizes)]
            path = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
            svg.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[server]}" stroke-width="2"/>')
            svg += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{COLOURS[server]}"/>' for x, y in points]
    left, top = (len(curves) % columns) * width + 46, (rows - 1) * height + 50
    if len(curves) % columns:
        for place, (server, colour) in enumerate(COLOURS.items()):
            svg.append(f'<circle cx="{left}" cy="{top + 20 * place}" r="4" fill="{colour}"/>')
            svg.append(f'<text x="{left + 12}" y="{top + 20 * place + 4}">{server}</text>')
    svg.append("</svg>")
    return "\n".join(svg) + "\n"


def main():
    values = read(sys.argv[1])
    if len(sys.argv) < 3:
        print(tables(values))
        return
    docs = pathlib.Path(__file__).resolve().parents[2] / "docs"
    page = docs / "scale.md"
    begin, end = "<!-- tests/scale/run.sh --page -->\n", "<!-- end -->\n"
    made = f"{begin}\nMeasured in one run ({sys.argv[2]}), at the largest size of each:\n\n{summary(values)}\n{end}"
    whole = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: made, page.read_text(), flags=re.S)
    page.write_text(whole)
    (docs / "scale.svg").write_text(picture(values))


if __name__ == "__main__":
    main()
