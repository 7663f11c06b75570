#!/usr/bin/env python3
"""The cost of a call through bridges: bridge.py BRIDGE FIXTURE CALC PEERS. Started by bridge.sh.

Each is a host's stdio server in front of the same HTTP server. Calls are sequential. Processor time is that of the bridge with all
its children, RSS that of the largest moment. Instructions are those of callgrind, of our own bridge alone."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/bridge"))
bridge, fixture, calc, peers = sys.argv[1:]
os.environ["BRIDGE_PROGRAMS"] = str(Path(fixture).parent)

from programs import HttpServer

CALLS, MORE = 100, 600


class Host:
    """A host of 2025-11-25."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE if "valgrind" in command else subprocess.DEVNULL
        )
        self.last = 0
        info = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.last += 1
        self.say({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            assert line, "the bridge has ended"
            message = json.loads(line) if line.startswith(b"{") else {}
            if message.get("id") == self.last:
                assert "result" in message, message
                return

    def calls(self, tool, arguments, count):
        for _ in range(count):
            self.ask("tools/call", name=tool, arguments=arguments)

    def tree(self):
        """Returns the processor time in microseconds, and the memory in KiB, of the process and its children."""
        parents, used = {}, {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                memory = re.search(r"VmRSS:\s*(\d+)", (entry / "status").read_text())
            except (OSError, IndexError):
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = ((int(fields[11]) + int(fields[12])) * 10_000, int(memory[1]) if memory else 0)
        mine, added = {self.process.pid}, True
        while added:
            children = {child for child, parent in parents.items() if parent in mine} - mine
            mine, added = mine | children, bool(children)
        return [sum(used.get(each, (0, 0))[column] for each in mine) for column in (0, 1)]

    def end(self):
        self.process.stdin.close()
        errors = self.process.stderr.read().decode() if self.process.stderr else ""
        self.process.terminate()
        self.process.wait()
        return errors


def cost(name, command, calls):
    host = Host(command)
    host.calls("test_simple_text", {}, 20)
    before, begun = host.tree()[0], time.monotonic()
    host.calls("test_simple_text", {}, calls)
    wall, (after, memory) = time.monotonic() - begun, host.tree()
    host.end()
    print(f"{name:14} {wall / calls * 1e6:10.0f} {(after - before) / calls:10.0f} {memory / 1024:8.1f}", flush=True)


def instructions(era):
    """Returns the instructions of one call, with calc as a child."""
    counts = []
    for calls in (CALLS, MORE):
        log = "valgrind --tool=callgrind --callgrind-out-file=/dev/null".split()
        host = Host([*log, bridge, "--era", era, "--", calc, "stdio"])
        host.calls("add", {"a": 1, "b": 2}, calls)
        host.process.stdin.close()
        errors = host.process.stderr.read().decode()
        host.process.wait()
        counts.append(int(re.search(r"Collected : (\d+)", errors)[1]))
    return (counts[1] - counts[0]) / (MORE - CALLS)


for era in ["legacy", "modern"]:
    print(f"mcp-bridge, instructions of a call, child, server {era}: {instructions(era):.0f}")
print(f"mcp-bridge, bytes of the program: {Path(bridge).stat().st_size}")
server = HttpServer()
print(f"{'over HTTP':14} {'wall, us':>10} {'CPU, us':>10} {'MiB':>8}")
try:
    cost("mcp-bridge", [bridge, server.url], 3000)
    for name, command in {
        "mcp-remote": [f"{peers}/node_modules/.bin/mcp-remote", server.url, "--allow-http"],
        "supergateway": [f"{peers}/node_modules/.bin/supergateway", "--streamableHttp", server.url],
        "mcp-proxy": [f"{peers}/venv/bin/mcp-proxy", "--transport", "streamablehttp", server.url],
    }.items():
        if Path(command[0]).exists():
            cost(name, command, 300)
        else:
            print(f"{name:14} is not installed")
finally:
    server.stop()
