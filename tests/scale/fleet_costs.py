#!/usr/bin/env python3
"""Measures a fleet of one to three processes behind nginx with Redis: requests a second and processor time with and without the
engine, memory of Redis for sessions, streams and tasks, and times where another process is needed. Everything is on this
machine, clients included, and shares its processors. Some two minutes; the machine should have nothing else to do.

usage: tests/scale/fleet_costs.py [--short] [--page]     --page writes the tables into docs/scale.md
"""

import argparse
import asyncio
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from processes import ROOT, Processes
from wire import send

BEGIN, END = "<!-- tests/scale/fleet_costs.py --page -->\n", "<!-- end of the fleet -->\n"
KINDS = {"modern": "2026-07-28", "session": "session", "stream": "session, event stream"}
LAYOUTS = [("one process, directly", 1, False), ("one, through nginx", 1, True), ("two", 2, True), ("three", 3, True)]
CONNECTIONS = 16
# What has another place when it is needed: words, and whether the process can do it by itself.
WAITS = {
    "call": "`tools/call`, which needs no other process",
    "poll": "`tasks/get`",
    "answer": "answer to a question, until the call is answered",
    "resume": "resumption of an open stream, until the next event is there",
    "change": "change of a resource, until a listen has it",
    "delete": "DELETE, which waits for the others",
}
CAPABILITIES = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    "io.modelcontextprotocol/clientInfo": {"name": "costs", "version": "1"},
}


def processor_time(pid):
    """Returns the seconds of processor time of a process and its children."""
    process = Path(f"/proc/{pid}")
    threads = list((process / "task").iterdir())
    spent = sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    children = [child for thread in threads for child in (thread / "children").read_text().split()]
    return spent + sum(processor_time(child) for child in children)


def spent(processes):
    """Returns the processor time of the servers together, of nginx and of Redis."""
    servers = sum(processor_time(server.pid) for server in processes.servers)
    return [servers, *(processor_time(one.pid) if one else 0 for one in (processes.nginx, processes.redis))]


def rates(programs, millis):
    """Returns requests a second and microseconds for each, of servers, nginx and Redis: by layout, engine and kind."""
    server, client = programs
    found = {}
    for name, count, proxy in LAYOUTS:
        for fleet in (False, True):
            with Processes(server, count, fleet=fleet, proxy=proxy) as processes:
                port = processes.port if proxy else processes.ports[0]
                for kind in KINDS:
                    words = [client, "load", str(port), kind, str(CONNECTIONS)]
                    # The first one opens what is opened once. Of the others the middle one counts.
                    load(processes, [*words, "100"])
                    found[name, fleet, kind] = sorted(load(processes, [*words, str(millis)]) for _ in range(3))[1]
    return found


def load(processes, words):
    """Runs a client. Returns requests a second, and microseconds for each, of servers, nginx and Redis."""
    before = spent(processes)
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=60)
    requests, seconds = map(float, said.stdout.split())
    return (requests / seconds, *((now - then) / requests * 1e6 for now, then in zip(spent(processes), before)))


def latencies(programs, rounds):
    """Returns microseconds of the median and the 99th percentile: by what, and where."""
    server, client = programs
    with Processes(server, 3, proxy=False) as processes:
        words = [client, "latency", *map(str, processes.ports[:2]), str(rounds)]
        said = subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=120, text=True)
    lines = [line.split("\t") for line in said.stdout.splitlines()]
    return {(what, place): (int(median), int(most)) for what, place, median, most in lines}


class Filling:
    """Makes many of something at processes, and measures what Redis keeps for them."""

    def __init__(self, processes, count):
        self.processes, self.count, self.held = processes, count, []

    def port(self, number):
        """Returns the port of the process whose turn it is."""
        return self.processes.ports[number % len(self.processes.ports)]

    async def post(self, number, method, params, session=None):
        """Sends a request to the process whose turn it is, and returns the head of its answer."""
        headers = {"Accept": "application/json, text/event-stream"}
        if session:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        elif method != "initialize":
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
            params = params | {"_meta": META}
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        response = await send(self.port(number), "POST", "/mcp", headers, body)
        assert response.status == 200, response.status
        return response

    async def result(self, *request):
        """Sends a request, and returns its result."""
        response = await self.post(*request)
        message = await response.json()
        assert "result" in message, message
        return message["result"]

    async def open(self, number):
        """Opens a session, and uses it once at each process. Returns its id."""
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "costs", "version": "1"}}
        response = await self.post(number, "initialize", client)
        await response.json()
        session = response.headers["mcp-session-id"]
        for other in range(len(self.processes.ports)):
            await self.result(number + other, "ping", {}, session)
        return session

    async def subscribe(self, number):
        """Opens a session with a subscription."""
        session = await self.open(number)
        await self.result(number, "resources/subscribe", {"uri": f"scale://resource/{number}"}, session)

    async def ended(self, number):
        """Opens a session and ends it."""
        response = await send(self.port(number), "DELETE", "/mcp", {"Mcp-Session-Id": await self.open(number)})
        assert response.status in (200, 204), response.status
        response.close()

    async def hold(self, response, what):
        """Keeps a stream open, once its first message was read."""
        assert response.status == 200 and response.is_stream, response.status
        self.held.append(response)
        pending = b""
        while what not in pending:
            piece = await asyncio.wait_for(response.piece(), 10)
            assert piece, "the stream has ended"
            pending += piece

    async def session_stream(self, number):
        """Opens the stream of a session."""
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": await self.open(number)}
        response = await send(self.port(number), "GET", "/mcp", headers)
        assert response.status == 200 and response.is_stream, response.status
        self.held.append(response)

    async def listen(self, number):
        """Opens a listen for a resource."""
        watched = {"notifications": {"resourceSubscriptions": [f"scale://resource/{number}"]}}
        await self.hold(await self.post(number, "subscriptions/listen", watched), b"acknowledged")

    async def stream(self, number):
        """Opens the stream of a call in a session, with two events so far."""
        call = {"name": "wait", "arguments": {}, "_meta": {"progressToken": number}}
        await self.hold(await self.post(number, "tools/call", call, await self.open(number)), b'"progress":2')

    async def task(self, number):
        """Begins a task."""
        begun = await self.result(number, "tools/call", {"name": "start", "arguments": {"text": "-"}})
        assert begun["taskId"]

    def keys(self):
        """Returns the keys of Redis that belong to something, without the messages between the processes."""
        keys = self.processes.redis_call("KEYS", "mcp:costs:*")
        return {key for key in keys if not re.match(r"mcp:costs:(all|to:)", key)}

    async def measure(self, make):
        """Makes them, 16 at a time. Returns the keys for each, and their bytes."""
        before = self.keys()
        for first in range(0, self.count, 16):
            await asyncio.gather(*(make(number) for number in range(first, min(first + 16, self.count))))
        # What is to be sent is sent.
        await asyncio.sleep(0.5)
        new = self.keys() - before
        size = sum(self.processes.redis_call("MEMORY", "USAGE", key, "SAMPLES", "0") for key in new)
        for response in self.held:
            response.close()
        self.held.clear()
        return len(new) / self.count, size / self.count


def memory(programs, count):
    """Returns keys and bytes for each of something, and bytes of a message between processes."""
    server, _ = programs
    rows = [
        ("session that is used at three processes", "open", ""),
        ("the same with a subscription", "subscribe", "the time to the end of the session"),
        ("session that was ended by DELETE", "ended", "the time to the end of the session"),
        ("stream of a session, open", "session_stream", ""),
        ("`subscriptions/listen`, open", "listen", ""),
        ("stream of a call in a session, with two events", "stream",
         "twice `EndpointConfig::resume_within` after its end"),
        ("task", "task", "its time to live, at most `FleetLimits::keep`"),
    ]
    found = []
    for words, name, kept in rows:
        with Processes(server, 3, proxy=False) as processes:
            filling = Filling(processes, count)
            found.append((words, *asyncio.run(filling.measure(getattr(filling, name))), kept))
            if name == "subscribe":
                entries = processes.redis_call("XLEN", "mcp:costs:all")
                each = processes.redis_call("MEMORY", "USAGE", "mcp:costs:all", "SAMPLES", "0") / entries
    return found, each


def shown(value):
    """Returns a number with some three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 0.05 else "0"


def rate_tables(found):
    """Returns the tables of requests."""
    columns = [(kind, fleet) for kind in KINDS for fleet in (False, True)]
    head = ["| | " + " | ".join(KINDS[kind] + ("; in a fleet" if fleet else "") for kind, fleet in columns) + " |",
            "|---|" + "---:|" * len(columns)]

    def line(words, layout, part):
        return f"| {words} | " + " | ".join(shown(found[layout, fleet, kind][part]) for kind, fleet in columns) + " |"

    lines = [f"**Requests a second, {CONNECTIONS} connections**", "", *head]
    lines += [line(name, name, 0) for name, _, _ in LAYOUTS]
    lines += ["", "**µs of processor time for a request, of all servers together; and of what stands beside three**", "", *head]
    lines += [line(name, name, 1) for name, _, _ in LAYOUTS]
    return [*lines, line("nginx", "three", 2), line("Redis", "three", 3), ""]


def tables(programs, short):
    """Measures, and returns the tables in Markdown."""
    millis, rounds, count = (100, 50, 100) if short else (700, 1_000, 1_000)
    lines = rate_tables(rates(programs, millis))
    found, each = memory(programs, count)
    lines += [f"**Memory of Redis, for each of {count:,}**", "", "| | keys | bytes | kept for |", "|---|---:|---:|---|"]
    lines += [f"| {words} | {shown(keys)} | {shown(size)} | {kept} |" for words, keys, size, kept in found]
    lines += [f"| message between processes, of a subscription | | {shown(each)} | until `FleetOptions::keep` (10,000) others have followed |", ""]
    waits = latencies(programs, rounds)
    lines += ["**µs until it is done, without nginx: median, 99th percentile**", "",
              "| | at its process | at another |", "|---|---:|---:|"]
    for what, words in WAITS.items():
        places = (waits.get((what, place)) for place in ("here", "elsewhere"))
        lines.append(f"| {words} | " + " | ".join(f"{one[0]:,}, {one[1]:,}" if one else "" for one in places) + " |")
    return "\n".join(lines) + "\n"


def version(program, option):
    """Returns the version of a program."""
    said = subprocess.run([program, option], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return re.search(r"\d+\.\d+\.\d+", said)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="to see that it works: some 30 seconds")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/scale.md")
    arguments = parser.parse_args()
    missing = [program for program in ("nginx", "redis-server") if not shutil.which(program)]
    if missing:
        parser.exit(2, f"needs {' and '.join(missing)} (Debian: nginx-light redis-server)\n")
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "mcp-sansio-scale", "--bin", "fleet-costs-server",
                    "--bin", "fleet-costs-client"], cwd=ROOT, check=True)
    # A descriptor for each connection, here and in the servers, which inherit the limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    release = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
    text = tables([str(release / f"fleet-costs-{part}") for part in ("server", "client")], arguments.short)
    if not arguments.page:
        print(text)
        return
    machine = f"rustc {version('rustc', '-V')}, Redis {version('redis-server', '-v')}, nginx {version('nginx', '-v')}, " \
              f"{os.cpu_count()} processors"
    page = ROOT / "docs/scale.md"
    made = f"{BEGIN}\nMeasured in one run ({machine}).\n\n{text}\n{END}"
    whole, replaced = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: made, page.read_text(), flags=re.S)
    assert replaced == 1, "docs/scale.md has the two comments"
    page.write_text(whole)


if __name__ == "__main__":
    sys.exit(main())
