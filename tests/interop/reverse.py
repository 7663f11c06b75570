#!/usr/bin/env python3
"""Our client (the walker) against the servers of other SDKs, and our own. See README.md."""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from harness import HERE, LEGACY, MODERN, ROOT, TARGET, end_group

ALL = [*LEGACY, MODERN]
AUTO = "auto"
WALK_SECONDS = 90
LISTEN_SECONDS = 60
NPM = str(HERE / "node_modules/@modelcontextprotocol/server-")
LOOPBACK = {"NODE_OPTIONS": f"--require={HERE / 'servers/loopback.cjs'}"}


def python(venv, kit):
    return [str(HERE / f".venv-{venv}/bin/python"), str(HERE / f"servers/{kit}.py")]


def kit(command, revisions, auto):
    return {
        "stdio": lambda _: [*command, "stdio"],
        "http": lambda port, _: ([*command, "http", str(port)], {}),
        "plan": "kit",
        "revisions": revisions,
        "auto": auto,
    }


# What starts each server, which plan it is walked through with, what it speaks, and what it settles on if not pinned.
SERVERS = {
    "everything": {
        "stdio": lambda _: ["node", NPM + "everything/dist/index.js", "stdio"],
        "http": lambda port, _: (
            ["node", NPM + "everything/dist/index.js", "streamableHttp"],
            {"PORT": str(port), **LOOPBACK},
        ),
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
    "mcp-1.30": kit(python("mcp-1.30", "kit_mcp_1"), LEGACY, LEGACY[-1]),
    "mcp-2.3": kit(python("mcp-2.3", "kit_mcp_2"), ALL, MODERN),
    "fastmcp-4": kit(python("fastmcp-4", "kit_fastmcp_4"), ALL, MODERN),
    "rmcp-3.9": kit([str(TARGET / "release/interop-rmcp")], ALL, MODERN),
    "calc": {
        "stdio": lambda _: [str(TARGET / "release/examples/calc"), "stdio"],
        "http": lambda port, _: ([str(TARGET / "release/examples/calc"), "http", str(port)], {}),
        "plan": "calc",
        "revisions": ALL,
        "auto": MODERN,
    },
    "sysmon": {
        "stdio": lambda _: [str(TARGET / "release/examples/sysmon")],
        "http": lambda port, _: ([str(TARGET / "release/examples/sysmon"), "--http", f"127.0.0.1:{port}"], {}),
        "plan": "sysmon",
        "revisions": ALL,
        "auto": MODERN,
    },
}

# What a server does though it should not: the server, what is told of it (None: how it ends), in which steps (None: any).
# Whatever it is, our client goes on, and the steps are checked all the same.
FLAWS = []


class Mismatch(Exception):
    """Something is not as the plan has it."""


def within(expected, found, where=""):
    """Whether all that is expected is there. Strings that begin with ~ are regular expressions."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found and value is not None:
                raise Mismatch(f"{where}.{key} is missing")
            within(value, found.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            raise Mismatch(f"{where} has {len(found)} elements, not {len(expected)}")
        for at, (a, b) in enumerate(zip(expected, found)):
            within(a, b, f"{where}[{at}]")
    elif isinstance(expected, str) and expected.startswith("~"):
        if not re.search(expected[1:], str(found)):
            raise Mismatch(f"{where} is {found!r}, which has no /{expected[1:]}/")
    elif expected != found:
        raise Mismatch(f"{where} is {found!r}, not {expected!r}")


def is_within(expected, found):
    try:
        within(expected, found)
        return True
    except Mismatch:
        return False


def applies(step, server, transport, revision):
    return (
        step.get("from", ALL[0]) <= revision <= step.get("until", MODERN)
        and step.get("on", transport) == transport
        and server in step.get("servers", [server])
        and server not in step.get("not", [])
    )


def check_step(server, step, came):
    """What came of a step, against the plan's `expect`."""
    expect = step.get("expect", {})
    events = came.get("events", [])
    for event in events:
        if event in came.get("late", []):
            continue
        odd = event["event"] in ("ignored", "other") or event.get("failure")
        if odd and not is_flaw(server, event, step) and event not in expect.get("odd", []):
            raise Mismatch(f"odd: {event}")
    for late in came.get("late", []):
        # What was under way already, may come; an answer may not.
        under_way = late["event"] in ("log", "asked") or late == {"event": "ignored", "what": "UnknownProgress"}
        if not under_way and not is_flaw(server, late, step):
            raise Mismatch(f"after it was cancelled: {late}")
    if came.get("flaws"):
        raise Mismatch(f"flaws: {came['flaws']}")
    for inner, result in zip(step.get("then", []), [e["came"] for e in events if e["event"] == "then"]):
        check_step(server, inner, result)
    if "error" in expect:
        within({"code": expect["error"]}, came.get("error") or {"instead": came}, "error")
        return
    if "failure" in expect:
        within("~" + expect["failure"], came.get("failure"), "failure")
        return
    if "error" in came or "failure" in came:
        raise Mismatch(f"{came.get('error') or came.get('failure')}")
    result = came.get("result") or {}
    if step["do"] == "call" and "cancelled" not in came:
        within(expect.get("is_error", False), result.get("isError", False), "isError")
    if "text" in expect:
        texts = [piece.get("text", "") for piece in result.get("content", [])]
        within("~" + expect["text"], "\n".join(texts), "text")
    for key in ("result", "answers"):
        if key in expect:
            within(expect[key], came[key], key)
    left = iter(events)
    for event in expect.get("events", []):
        if not any(is_within(event, other) for other in left):
            raise Mismatch(f"no event like {event} (in that order) among {events}")
    for name, least in expect.get("counts", {}).items():
        if (count := sum(event["event"] == name for event in events)) < least:
            raise Mismatch(f"{count} events {name}, not {least}")
    if "names" in expect:
        check_names(expect["names"], came["items"], came["name"])


def check_names(offer, items, what):
    found = [item.get("uriTemplate") or item.get("uri") or item["name"] for item in items]
    missing = [name for name in offer.get("always", []) if name not in found]
    known = offer.get("always", []) + offer.get("maybe", [])
    more = [name for name in found if not any(re.fullmatch(one, name) or one == name for one in known)]
    if missing or more or len(set(found)) != len(found):
        raise Mismatch(f"{what}: missing {missing}, not in the plan {more}, all {found}")


def is_flaw(server, event, step=None):
    name = step and (step.get("name") or step["do"])
    for whose, what, where in FLAWS:
        if whose == server and is_within(what, event) and (where is None or where == name):
            return True
    return False


class Report:
    def __init__(self, verbose):
        self.passed = self.failed = 0
        self.verbose, self.table = verbose, {}

    def line(self, where, name, reason, millis=0):
        server, transport, revision = where
        cell = self.table.setdefault(where, [0, 0])
        cell[bool(reason)] += 1
        self.passed, self.failed = self.passed + (not reason), self.failed + bool(reason)
        if reason or self.verbose:
            word = "FAIL" if reason else "pass"
            print(f"{word}  {server:<10} {transport:<5} {revision:<10}  {name:<36} {millis:6} ms" + (f"  {reason}" if reason else ""), flush=True)


def seed(folder):
    """What the file servers find."""
    (folder / "hello.txt").write_text("hello\nworld\n")
    (folder / "sub").mkdir()
    (folder / "sub/deep.md").write_text("# Deep\n")
    (folder / "dot.png").write_bytes(bytes.fromhex("89504e470d0a1a0a"))


async def walk(server, transport, revision, target, folder, options, report):
    spec = SERVERS[server]
    plan = json.loads((HERE / f"plans/{spec['plan']}.json").read_text().replace("$FOLDER", str(folder)))
    spoken = spec["auto"] if revision == AUTO else revision
    where = (server, transport, revision)
    steps = [step for step in plan["steps"] if applies(step, server, transport, spoken)]
    logs = Path(options.logs) / "reverse" / server / transport / revision
    logs.mkdir(parents=True, exist_ok=True)
    stdin = "".join(json.dumps(step) + "\n" for step in steps)
    with open(logs / "stderr", "wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(TARGET / "release/mcp-sansio-walker"), revision, *target,
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
    came = [json.loads(line) for line in output.splitlines()]
    judge(where, spoken, plan, steps, came, report)


def judge(where, spoken, plan, steps, came, report):
    server, transport, _ = where
    taken = iter(steps)
    seen = {"connect": False, "end": False}
    listed = {}
    for one in came:
        name, reason = one.get("step", "?"), None
        try:
            if name == "connect":
                seen["connect"] = True
                if "failure" in one:
                    raise Mismatch(one["failure"])
                within(spoken, one["revision"], "revision")
                within(plan.get("connect", {}), one["result"])
                check_step(server, {"do": "connect"}, one)
            elif name == "end":
                seen["end"] = True
                if transport == "stdio" and not is_flaw(server, {"how": one["how"]}):
                    within({"how": "Closed", "code": 0}, one)
            elif "items" in one and "name" not in one or name in plan["offers"]:
                listed[name] = [item.get("uriTemplate") or item.get("uri") or item["name"] for item in one.get("items", [])]
                check_step(server, {"do": name}, one)
                check_names(plan["offers"][name], one["items"], name)
            elif name in ("start", "?"):
                raise Mismatch(str(one))
            else:
                step = next(taken)
                name = f"{step['do']} {step.get('name', '')}".strip()
                check_step(server, step, one)
        except Mismatch as mismatch:
            reason = str(mismatch)
        report.line(where, name, reason, one.get("took", 0))
    for what, there in seen.items():
        if not there:
            report.line(where, what, "the walker did not come to it")
    for step in taken:
        report.line(where, f"{step['do']} {step.get('name', '')}", "not taken")
    called = {step.get("name") for step in all_steps(plan["steps"])}
    for tool in listed.get("tools", []):
        if tool not in called and tool not in plan.get("uncalled", {}):
            report.line(where, f"call {tool}", "listed, but in no step of the plan")


def all_steps(steps):
    for step in steps:
        yield step
        yield from all_steps(step.get("then", []))


async def serve(server, folder, log):
    """A server over HTTP, and where it is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command, env = SERVERS[server]["http"](port, str(folder))
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
        start_new_session=True, env={**os.environ, **env},
    )
    end = time.monotonic() + LISTEN_SECONDS
    while time.monotonic() < end and process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return process, f"http://127.0.0.1:{port}/mcp"
        except OSError:
            await asyncio.sleep(0.05)
    return process, None


async def combination(server, transport, revisions, options, report):
    """A server over a transport in all revisions, one after the other."""
    with tempfile.TemporaryDirectory(prefix="walker-") as temporary:
        for number, revision in enumerate(revisions):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            seed(folder)
            if transport == "stdio":
                target = ["--", *SERVERS[server]["stdio"](str(folder))]
                await walk(server, transport, revision, target, folder, options, report)
        if transport == "http":
            logs = Path(options.logs) / "reverse" / server / transport
            logs.mkdir(parents=True, exist_ok=True)
            with open(logs / "server.log", "wb") as log:
                process, url = await serve(server, temporary, log)
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
    parser.add_argument("--transport", choices=["stdio", "http", "all"], default="all")
    parser.add_argument("--revision", choices=[*ALL, AUTO, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="not pinned, and the oldest revision, alone")
    parser.add_argument("--jobs", type=int, default=2, help="servers side by side (default 2)")
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
        async with gate:
            await combination(server, transport, revisions, options, report)

    await asyncio.gather(
        *(
            guarded(server, transport)
            for server in ([options.server] if options.server != "all" else SERVERS)
            for transport in (["stdio", "http"] if options.transport == "all" else [options.transport])
            if transport in SERVERS[server]
        )
    )
    print(f"\n{'server':<11} {'over':<6}" + "".join(f"{revision:>12}" for revision in [AUTO, *ALL]))
    for server, transport in dict.fromkeys((server, transport) for server, transport, _ in sorted(report.table)):
        cells = [report.table.get((server, transport, revision)) for revision in [AUTO, *ALL]]
        words = ["-" if cell is None else f"{cell[0]}/{sum(cell)}" for cell in cells]
        print(f"{server:<11} {transport:<6}" + "".join(f"{word:>12}" for word in words))
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
