#!/usr/bin/env python3
"""Makes the tables of benches/compare.sh from its values; with --page also writes them into docs/benchmarks.md, and their
figures into the table of README.md.

usage: benches/page.py VALUES [--page]
"""

import collections
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
HANDSHAKE, MODERN = "2025-06-18", "2026-07-28"
LOADS = {
    ("echo32", "1"): f"{HANDSHAKE}, 1 connection",
    ("echo32", "16"): f"{HANDSHAKE}, 16 connections",
    ("echo32", "64"): f"{HANDSHAKE}, 64 connections",
    ("modern32", "1"): f"{MODERN}, 1 connection",
    ("modern32", "16"): f"{MODERN}, 16 connections",
    ("modern32", "64"): f"{MODERN}, 64 connections",
    ("plain4k", "1"): f"{HANDSHAKE}, 4 KiB of text, one at a time",
    ("plain4k", "16"): f"{HANDSHAKE}, 4 KiB of text, 16 connections",
    ("modern4k", "1"): f"{MODERN}, 4 KiB of text, one at a time",
    ("modern4k", "16"): f"{MODERN}, 4 KiB of text, 16 connections",
    ("plain64k", "1"): f"{HANDSHAKE}, 64 KiB of text, one at a time",
    ("plain64k", "16"): f"{HANDSHAKE}, 64 KiB of text, 16 connections",
    ("modern64k", "1"): f"{MODERN}, 64 KiB of text, one at a time",
    ("modern64k", "16"): f"{MODERN}, 64 KiB of text, 16 connections",
    ("plain1m", "1"): f"{HANDSHAKE}, 1 MiB of text, one at a time",
    ("plain1m", "16"): f"{HANDSHAKE}, 1 MiB of text, 16 connections",
    ("modern1m", "1"): f"{MODERN}, 1 MiB of text, one at a time",
    ("modern1m", "16"): f"{MODERN}, 1 MiB of text, 16 connections",
}
# What the page shows of these: the rates by which one decides, and the times of many connections.
RATES = [("echo32", "1"), ("echo32", "16"), ("modern32", "1"), ("modern32", "16"), ("modern64k", "1"), ("modern1m", "1")]
TIMES = [("modern32", "16")]
STDIO = {
    ("echo32", "1"): "calls per second, one at a time",
    ("echo32", "64"): "calls per second, 64 in flight",
    ("plain64k", "1"): "calls per second with 64 KiB of text",
}
PROGRAMS = {"floor": "floor", "mcp-sansio": "calc-stdio", "rmcp": "bench-rmcp-server"}
CLIENTS = {
    "floor-client": "no library, blocking", "floor-client-smol": "no library, `async-io`",
    "client": "blocking client", "client-http": "blocking client",
    "client-smol": "smol client", "client-smol-http": "smol client",
    "bench-rmcp-client": "rmcp's client", "bench-rmcp-http-client": "rmcp's client",
}


def read(path):
    """Returns the lines of each section, each a list of words."""
    sections = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text().splitlines():
        section, *words = line.split("\t")
        # The results of a client are one word.
        sections[section].append([part for word in words for part in (word.split(" ") if section.endswith("client") else [word])])
    return sections


def shown(value):
    """Returns a number with some three digits."""
    value = float(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head, rows):
    """Returns a table; cells that are missing are empty."""
    lines = ["| " + " | ".join(["", *head]) + " |", "|---|" + "---:|" * len(head)]
    return lines + ["| " + " | ".join([title, *(cell or "" for cell in cells)]) + " |" for title, cells in rows] + [""]


def http_tables(values, rates, times):
    """Returns the table of the servers over HTTP, with rows for these loads."""
    cells, servers, reasons = {}, [], []
    for kind, width, server, *found in values["http"]:
        if server not in servers:
            servers.append(server)
        cells[kind, width, server] = found
        if found[0] == "failed":
            reasons.append(f"{server}, {LOADS[kind, width]}: {found[1]}")

    def rows(loads, cell):
        def of(load, server):
            found = cells.get((*load, server), ["failed"])
            return "–" if found[0] == "failed" else cell(*found)

        return [(LOADS[load], [of(load, server) for server in servers]) for load in loads]

    lines = ["Requests per second; the last row has the µs for an answer, median and 99th percentile:", ""]
    of_time = rows(times, lambda _, __, middle, late, ___: f"{shown(middle)}, {shown(late)}")
    lines += table(servers, rows(rates, lambda rate, *_: shown(rate)) + [(f"{title}, µs", row) for title, row in of_time])
    if reasons:
        lines += ["Not served, or not whole: " + "; ".join(reasons) + ".", ""]
    return lines


def of_program(values, section, names):
    """Returns the value of each program in a section; `None` where there is none."""
    found = {words[0]: words[1:] for words in values[section]}
    return [found.get(name, [None])[0] for name in names]


def kib(sizes):
    return [size and f"{int(size) / 1024:,.0f} KiB" for size in sizes]


def numbers(found):
    return [value and shown(value) for value in found]


def stdio_table(values):
    """Returns the table of the servers over stdio."""
    servers = list(dict.fromkeys(server for _, _, server, *_ in values["stdio"]))
    rates = {(kind, width, server): rate for kind, width, server, rate, *_ in values["stdio"]}
    programs = [PROGRAMS.get(server) for server in servers]
    rows = [(title, numbers([rates.get((*load, server)) for server in servers])) for load, title in STDIO.items()]
    rows.append(("instructions per call", numbers(of_program(values, "instructions-echo32", programs))))
    rows.append(("instructions per call of 2026-07-28", numbers(of_program(values, "instructions-modern32", programs))))
    memory = {server: found for server, *found in values["memory"]}
    for at, title in enumerate(["start to first answer, ms", "idle, KiB", "peak with one message of 1 MiB, KiB"]):
        rows.append((title, numbers([memory[server][at] if server in memory else None for server in servers])))
    rows.append(("binary, stripped, for size", kib(of_program(values, "size", programs))))
    rows.append(("crates in the normal tree", of_program(values, "crates", programs)))
    return table(servers, rows)


def medians(values, section):
    """Returns the medians of the rounds of each client: µs to the first answer, calls per second, allocations per call."""
    rounds = collections.defaultdict(list)
    for name, *found in values[section]:
        rounds[name].append([float(value) for value in found])
    return {name: [*map(statistics.median, zip(*found))] for name, found in rounds.items()}


def client_tables(values):
    """Returns the tables of the clients over stdio and over HTTP."""
    lines = []
    for section, title in [("client", "Over stdio, to a child process:"), ("web-client", "Over HTTP, on one connection that is kept:")]:
        found = medians(values, section)
        rows = [
            ("calls per second", [shown(of[1]) for of in found.values()]),
            ("allocations per call", [f"{of[2]:.1f}" for of in found.values()]),
        ]
        if section == "client":
            rows.insert(1, ("instructions per call, without the server's", numbers(of_program(values, "instructions-echo32", found))))
            rows.append(("binary, stripped", kib(of_program(values, "size", found))))
            rows.append(("crates in the normal tree", of_program(values, "crates", found)))
        lines += [title, "", *table([CLIENTS[name] for name in found], rows)]
    return lines


def readme_rows(values):
    """Returns the rows of README.md: their titles, ours, rmcp's."""
    def pair(section, *names):
        return numbers(of_program(values, section, names))

    web = medians(values, "web-client")
    rates = {(kind, width, server): found for kind, width, server, *found in values["http"]}

    def rate(server):
        found = rates.get(("echo32", "16", server), ["failed"])
        return None if found[0] == "failed" else shown(found[0])

    def of(found, name, at, form):
        return form(found[name][at]) if name in found else None

    return {
        "instructions of a `tools/call` over stdio": pair("instructions-echo32", "calc-stdio", "bench-rmcp-server"),
        "crates in the normal tree of a stdio server": of_program(values, "crates", ["calc-stdio", "bench-rmcp-server"]),
        "requests per second of an HTTP server, 16 connections": [rate("mcp-sansio"), rate("rmcp")],
        "instructions of a call by the client": pair("instructions-echo32", "client", "bench-rmcp-client"),
        "calls per second of the client, over HTTP": [
            of(web, "client-http", 1, shown), of(web, "bench-rmcp-http-client", 1, shown)],
    }


def write_page(lines, rows):
    """Replaces what stands between the marks of docs/benchmarks.md, the rows of README.md, and the version of rmcp in both."""
    pinned = re.search(r'rmcp = \{ version = "=(\d+\.\d+)', (HERE / "benches/rmcp-server/Cargo.toml").read_text())[1]
    page = HERE / "docs/benchmarks.md"
    marked = re.compile(r"(<!-- benches/compare.sh: begin -->\n).*(<!-- benches/compare.sh: end -->\n)", re.DOTALL)
    text = page.read_text()
    assert marked.search(text), "no marks in docs/benchmarks.md"
    text = marked.sub(lambda found: found[1] + "\n" + "\n".join(lines) + "\n" + found[2], text)
    page.write_text(re.sub(r"(crates/rmcp\)) \d+\.\d+", rf"\1 {pinned}", text))
    readme = HERE / "README.md"
    text = re.sub(r"rmcp \d+\.\d+, the official SDK", f"rmcp {pinned}, the official SDK", readme.read_text())
    for title, (own, other) in rows.items():
        row = re.compile(rf"^\| {re.escape(title)} \| .*$", re.MULTILINE)
        assert row.search(text), f"no row '{title}' in README.md"
        if own and other:
            text = row.sub(f"| {title} | {own} | {other} |", text)
    readme.write_text(text)


def main():
    values = read(sys.argv[1])
    page = "--page" in sys.argv[2:]
    rates, times = (RATES, TIMES) if page else (LOADS, LOADS)
    lines = [f"Measured by `benches/compare.sh --page` ({values['machine'][0][0]}):", ""]
    lines += ["### Servers over HTTP", "", *http_tables(values, rates, times)]
    lines += ["### Servers over stdio", "", *stdio_table(values)]
    lines += ["### Clients", "", *client_tables(values)]
    lines += [f"Left out: {reason}." for reason, *_ in values["missing"]]
    rows = readme_rows(values)
    print("\n".join(lines))
    print("README.md:\n")
    print("\n".join(table(["mcp-sansio", "rmcp"], [(title, list(cells)) for title, cells in rows.items()])))
    if page:
        write_page([line for line in "\n".join(lines).rstrip().split("\n")] + [""], rows)


if __name__ == "__main__":
    main()
