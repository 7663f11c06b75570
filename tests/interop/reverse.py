#!/usr/bin/env python3
"""Our client (the walker) against the servers of other SDKs, and our own. See README.md."""

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from harness import HERE, LEGACY, MODERN, ROOT, TARGET, end_group
from verdict import ALL, Mismatch, check_list, check_step, choose, is_flaw, load_plan, title, unused, within

AUTO = "auto"
WALK_SECONDS = 120
LISTEN_SECONDS = 60
NPM = str(HERE / "node_modules/@modelcontextprotocol/server-")
LOOPBACK = {"NODE_OPTIONS": f"--require={HERE / 'servers/loopback.cjs'}"}


# One of the roots that the walker offers: the filesystem server serves nothing outside them.
ROOT_OF_WALKER = "/tmp"
PATHS = {"http": "/mcp", "sse": "/sse"}


def python(venv, kit):
    return [str(HERE / f".venv-{venv}/bin/python"), str(HERE / f"servers/{kit}.py")]


def kit(command, revisions, auto, *transports):
    on_port = {one: lambda port, one=one: ([*command, one, str(port)], {}) for one in transports}
    return {"stdio": lambda _: [*command, "stdio"], **on_port, "plan": "kit", "revisions": revisions, "auto": auto}


def everything(how):
    return lambda port: (["node", NPM + "everything/dist/index.js", how], {"PORT": str(port), **LOOPBACK})


def sysmon(port):
    return [str(TARGET / "debug/examples/sysmon"), "--http", f"127.0.0.1:{port}"], {}


def calc(port):
    return [str(TARGET / "debug/examples/calc"), "http", str(port)], {}


# What starts each server, which plan it is walked through with, what it speaks, and what it settles on if not pinned.
SERVERS = {
    "everything": {
        "stdio": lambda _: ["node", NPM + "everything/dist/index.js", "stdio"],
        "http": everything("streamableHttp"),
        "sse": everything("sse"),
        "plan": "everything",
        "revisions": LEGACY,
        "auto": LEGACY[-1],
    },
    "filesystem": {
        "stdio": lambda folder: ["node", NPM + "filesystem/dist/index.js", folder],
        "plan": "filesystem",
        "revisions": LEGACY,
        "auto": LEGACY[-1],
    },
    "memory": {
        "stdio": lambda folder: ["env", f"MEMORY_FILE_PATH={folder}/memory.jsonl", "node", NPM + "memory/dist/index.js"],
        "plan": "memory",
        "revisions": LEGACY,
        "auto": LEGACY[-1],
    },
    "mcp-1.30": kit(python("mcp-1.30", "kit_mcp_1"), LEGACY, LEGACY[-1], "http", "sse"),
    "mcp-2.3": kit(python("mcp-2.3", "kit_mcp_2"), ALL, MODERN, "http", "sse"),
    "fastmcp-4": kit(python("fastmcp-4", "kit_fastmcp_4"), ALL, MODERN, "http", "sse"),
    "rmcp-3.11": kit([str(TARGET / "debug/interop-rmcp")], ALL, MODERN, "http"),
    "calc": {
        "stdio": lambda _: [str(TARGET / "debug/examples/calc"), "stdio"],
        "http": calc,
        "sse": calc,
        "plan": "calc",
        "revisions": ALL,
        "auto": MODERN,
    },
    "sysmon": {
        "stdio": lambda _: [str(TARGET / "debug/examples/sysmon")],
        "http": sysmon,
        "sse": sysmon,
        "plan": "sysmon",
        "revisions": ALL,
        "auto": MODERN,
    },
}


class Report:
    def __init__(self, verbose):
        self.passed = self.failed = self.skipped = 0
        self.verbose, self.table = verbose, {}

    def line(self, where, name, reason, millis=0):
        server, transport, revision = where
        cell = self.table.setdefault(where, [0, 0])
        cell[bool(reason)] += 1
        self.passed, self.failed = self.passed + (not reason), self.failed + bool(reason)
        if reason or self.verbose:
            word = "FAIL" if reason else "pass"
            print(f"{word}  {server:<10} {transport:<5} {revision:<10}  {name:<36} {millis:6} ms" + (f"  {reason}" if reason else ""), flush=True)


    def skip(self, where, name, why):
        self.skipped += 1
        if self.verbose:
            server, transport, revision = where
            print(f"skip  {server:<10} {transport:<5} {revision:<10}  {name:<36}            {why}", flush=True)


def seed(folder):
    """What the file servers find."""
    (folder / "hello.txt").write_text("hello\nworld\n")
    (folder / "sub").mkdir()
    (folder / "sub/deep.md").write_text("# Deep\n")
    (folder / "dot.png").write_bytes(bytes.fromhex("89504e470d0a1a0a"))


async def walk(server, transport, revision, target, folder, options, report):
    spec = SERVERS[server]
    plan = load_plan(spec["plan"], folder)
    where = (server, transport, revision)
    spoken = (server, transport, auto(spec, transport) if revision == AUTO else revision)
    steps, skipped = choose(plan["steps"], spoken)
    logs = Path(options.logs) / "reverse" / server / transport / revision
    logs.mkdir(parents=True, exist_ok=True)
    stdin = "".join(json.dumps(step) + "\n" for step in steps)
    with open(logs / "stderr", "wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(TARGET / "debug/mcp-sansio-walker"), revision, *target,
            cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
            start_new_session=True, env={**os.environ, **({"WALKER_TRACE": "1"} if options.trace else {})},
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), WALK_SECONDS)
        except asyncio.TimeoutError:
            report.line(where, "walk", f"not done within {WALK_SECONDS} s")
            return
        finally:
            left = end_group(process.pid)
            await process.wait()
    (logs / "walk.jsonl").write_bytes(output)
    if left and transport == "stdio":
        report.line(where, "end", "a process was left behind")
    for name, why in skipped:
        report.skip(where, name, why)
    judge(where, spoken, plan, steps, [json.loads(line) for line in output.splitlines()], report)


def auto(spec, transport):
    """What is spoken if nothing is pinned. HTTP with SSE came before 2026-07-28."""
    return LEGACY[-1] if transport == "sse" else spec["auto"]


def judge(where, spoken, plan, steps, came, report):
    left, missing = iter(steps), ["connect", *(f"list {what}" for what in plan["offers"]), "end"]
    for one in came:
        step = {"do": one.get("step", "?"), "name": one.get("name") or ""}
        if step["do"] not in ("connect", "list", "end"):
            step = next(left, None) or {"do": "?"}
        name, reason = title(step), None
        missing = [what for what in missing if what != name]
        try:
            check(step, spoken, plan, one)
        except (Mismatch, KeyError, TypeError, AttributeError) as mismatch:
            reason = f"{type(mismatch).__name__}: {mismatch}"
        report.line(where, name, reason, one.get("took", 0))
    for name in missing:
        report.line(where, name, "the walker did not come to it")
    for step in left:
        report.line(where, title(step), "not taken")


def check(step, spoken, plan, came):
    server, transport, revision = spoken
    if step["do"] == "connect":
        if "failure" in came:
            raise Mismatch(came["failure"])
        within(revision, came["revision"], "revision")
        within(plan.get("connect", {}), came["result"])
        check_step(server, step, came)
    elif step["do"] == "list":
        check_list(spoken, plan, came)
        if forgotten := unused(plan, came["name"], came["items"]):
            raise Mismatch(f"in no step of the plan: {forgotten}")
    elif step["do"] == "end":
        if transport == "stdio" and not is_flaw(server, came):
            within({"after": "StdinClosed", "code": 0}, came)
    elif came.get("step") != step["do"]:
        raise Mismatch(str(came))
    else:
        check_step(server, step, came)


async def serve(server, transport, folder, log):
    """A server over HTTP, and where it is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command, env = SERVERS[server][transport](port)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
        start_new_session=True, env={**os.environ, **env},
    )
    end = time.monotonic() + LISTEN_SECONDS
    while time.monotonic() < end and process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return process, f"http://127.0.0.1:{port}{PATHS[transport]}"
        except OSError:
            await asyncio.sleep(0.05)
    return process, None


async def combination(server, transport, revisions, options, report):
    """A server over a transport in all revisions, one after the other."""
    with tempfile.TemporaryDirectory(prefix="walker-", dir=ROOT_OF_WALKER) as temporary:
        for number, revision in enumerate(revisions):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            seed(folder)
            if transport == "stdio":
                target = ["--", *SERVERS[server]["stdio"](str(folder))]
                await walk(server, transport, revision, target, folder, options, report)
        if transport != "stdio":
            logs = Path(options.logs) / "reverse" / server / transport
            logs.mkdir(parents=True, exist_ok=True)
            with open(logs / "server.log", "wb") as log:
                process, url = await serve(server, transport, temporary, log)
                try:
                    for revision in revisions:
                        if url is None:
                            report.line((server, transport, revision), "listen", f"the server does not ({process.returncode})")
                            continue
                        await walk(server, transport, revision, [url], Path(temporary) / "0", options, report)
                    if url and process.returncode is not None:
                        report.line((server, transport, AUTO), "end", f"the server has ended with {process.returncode}")
                finally:
                    end_group(process.pid)
                    await process.wait()


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=[*SERVERS, "all"], default="all")
    parser.add_argument("--transport", choices=["stdio", "http", "sse", "all"], default="all")
    parser.add_argument("--revision", choices=[*ALL, AUTO, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="not pinned, and the oldest revision, alone")
    parser.add_argument("--jobs", type=int, default=4, help="servers side by side (default 4)")
    parser.add_argument("--verbose", action="store_true", help="a line for each step, not only for what failed")
    parser.add_argument("--trace", action="store_true", help="every message in the log")
    parser.add_argument("--logs", default=str(HERE / ".logs"))
    options = parser.parse_args()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    report = Report(options.verbose)
    gate = asyncio.Semaphore(max(1, options.jobs))
    shutil.rmtree(Path(options.logs) / "reverse", ignore_errors=True)

    async def guarded(server, transport):
        spec = SERVERS[server]
        revisions = [AUTO, LEGACY[0]] if options.quick else [AUTO, *spec["revisions"]]
        revisions = [one for one in revisions if options.revision in (one, "all")]
        if transport == "sse":
            revisions = [one for one in revisions if one != MODERN]
        async with gate:
            await combination(server, transport, revisions, options, report)

    await asyncio.gather(
        *(
            guarded(server, transport)
            for server in ([options.server] if options.server != "all" else SERVERS)
            for transport in (["stdio", "http", "sse"] if options.transport == "all" else [options.transport])
            if transport in SERVERS[server]
        )
    )
    print(f"\n{'server':<11} {'over':<6}" + "".join(f"{revision:>12}" for revision in [AUTO, *ALL]))
    for server, transport in dict.fromkeys((server, transport) for server, transport, _ in sorted(report.table)):
        cells = [report.table.get((server, transport, revision)) for revision in [AUTO, *ALL]]
        words = ["-" if cell is None else f"{cell[0]}/{sum(cell)}" for cell in cells]
        print(f"{server:<11} {transport:<6}" + "".join(f"{word:>12}" for word in words))
    print(f"\n{report.skipped} steps were skipped for a reason in their plan (--verbose lists them)")
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
