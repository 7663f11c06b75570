"""What the runner and the scenarios share: clients, servers, the wire, checks."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"

# What starts each client, and the revisions it can be made to speak.
CLIENTS = {
    "python-1.30": {
        "command": [".venv-mcp-1.30/bin/python", "clients/python_1.py"],
        "revisions": LEGACY,
    },
    "python-2.3": {
        "command": [".venv-mcp-2.3/bin/python", "clients/python_2.py"],
        "revisions": LEGACY + [MODERN],
    },
    "npm-sdk-1.32": {
        "command": ["node", "clients/npm_sdk.cjs"],
        "revisions": LEGACY,
    },
    "npm-client-2.4": {
        "command": ["node", "clients/npm_client.mjs"],
        "revisions": LEGACY + [MODERN],
    },
}

TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")

# The command of each server: the environment variable, the default, how to build.
SERVERS = {
    "calc": {
        "variable": "INTEROP_CALC",
        "default": [str(TARGET / "debug/examples/calc"), "stdio"],
        # In place of the words that make it serve stdio.
        "http": lambda command, port: [word for word in command if word != "stdio"] + ["http", str(port)],
        "build": "cargo build --workspace --example calc",
    },
    "sysmon": {
        "variable": "INTEROP_SYSMON",
        "default": [str(TARGET / "debug/examples/sysmon")],
        "http": lambda command, port: [*command, "--http", f"127.0.0.1:{port}"],
        "build": "cargo build --workspace --example sysmon",
    },
    "firmware": {
        "variable": "INTEROP_FIRMWARE",
        "default": [str(ROOT / "examples/firmware/run.sh"), "uart"],
        "build": "see examples/firmware; it builds itself when it is run",
    },
    # The firmware over Ethernet. One board serves all scenarios of a client and revision.
    "board": {
        "variable": "INTEROP_BOARD",
        "default": [str(ROOT / "examples/firmware/run.sh"), "ethernet"],
        "http": lambda command, port: [*command, str(port)],
        "stdio": False,
        # Only where it is named.
        "all": False,
        "build": "see examples/firmware; it builds itself when it is run",
    },
}

# The path of each transport over HTTP, and the revisions that it is used with.
TRANSPORTS = {"stdio": None, "http": "/mcp", "sse": "/sse"}
TRANSPORT_REVISIONS = {"stdio": [*LEGACY, MODERN], "http": [*LEGACY, MODERN], "sse": LEGACY}

SCENARIO_SECONDS = 20
FIRMWARE_START_SECONDS = 20  # an emulator starts with every connection
FIRMWARE_BUILD_SECONDS = 900
EXIT_SECONDS = 5


# What an SDK complains of though nothing is wrong, and in which scenario (None: any).
# Whatever it is, the wire is checked all the same.
FLAWS = {
    # Both handle an answer before a notification that came ahead of it in the
    # same read, and have then forgotten the token.
    ("npm-sdk-1.32", "progress notification for an unknown token", None),
    ("npm-client-2.4", "progress notification for an unknown token", None),
    # Over HTTP both tell of the streams that their own close() cuts off.
    ("npm-sdk-1.32", "This operation was aborted", None),
    ("npm-client-2.4", "This operation was aborted", None),
    # Over HTTP the stream of a request that was cancelled ends without an answer; both
    # come back for the answer that they gave up, and tell that it is not there.
    ("npm-sdk-1.32", "Failed to open SSE stream: Bad Request", "watch.cancel"),
    ("npm-client-2.4", "Failed to open SSE stream: Bad Request", "watch.cancel"),
}


class Failure(Exception):
    """A check that did not hold."""


class Skip(Exception):
    """A scenario that cannot be done here."""


def server_command(name):
    server = SERVERS[name]
    if given := os.environ.get(server["variable"]):
        command = shlex.split(given)
    else:
        command = list(server["default"])
    if shutil.which(command[0]) is None:
        raise SystemExit(
            f"interop: no {name} server at {command[0]}\n"
            f"  build it with: {server['build']}\n"
            f"  or name another command in {server['variable']}"
        )
    return command


class Wire:
    """What passed between client and server, as the tap wrote it down."""

    def __init__(self, path):
        self.path = path

    def records(self, every_process=False):
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return []
        records = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        if every_process:
            return records
        # A client may probe a first process and then talk to another one.
        started = [r["tap"] for r in records if r["ev"] == "start"]
        return [r for r in records if started and r["tap"] == started[-1]]

    def messages(self, direction, every_process=False):
        """(time, message) of each line; "in" is client to server."""
        found = []
        for record in self.records(every_process):
            if record["ev"] == direction:
                try:
                    found.append((record["t"], json.loads(record["line"])))
                except ValueError:
                    pass  # told by check()
        return found

    def requests(self, method, direction="in"):
        return [m for _, m in self.messages(direction) if m.get("method") == method and "id" in m]

    def notifications(self, method, direction="out"):
        return [m for _, m in self.messages(direction) if m.get("method") == method and "id" not in m]

    def answer(self, request):
        for _, message in self.messages("out"):
            if "method" not in message and message.get("id") == request["id"]:
                return message
        return None

    def check(self, revision):
        """What must hold in every session, whatever was done in it."""
        asked, answered = set(), set()
        for record in self.records():
            if record.get("unfinished"):
                raise Failure(f"a line without its end: {record['line'][:200]!r}")
            if record.get("utf8") is False:
                raise Failure(f"not UTF-8 on stdout: {record['line'][:200]!r}")
            if record["ev"] not in ("in", "out"):
                continue
            try:
                message = json.loads(record["line"])
            except ValueError:
                if record["ev"] == "in":
                    continue
                raise Failure(f"not JSON on stdout: {record['line'][:200]!r}") from None
            if record["ev"] == "in":
                if "method" in message and "id" in message:
                    asked.add(key(message["id"]))
                continue
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise Failure(f"not a JSON-RPC message on stdout: {record['line'][:200]!r}")
            if "method" in message:
                if "id" in message and revision == MODERN:
                    raise Failure(f"a request on stdout under {revision}: {record['line'][:200]!r}")
                continue
            if ("result" in message) == ("error" in message):
                raise Failure(f"neither a result nor an error, or both: {record['line'][:200]!r}")
            identity = key(message.get("id"))
            if identity not in asked:
                raise Failure(f"an answer to nothing: {record['line'][:200]!r}")
            if identity in answered:
                raise Failure(f"a second answer to one request: {record['line'][:200]!r}")
            answered.add(identity)
            if "result" in message and ("resultType" in message["result"]) != (revision == MODERN):
                raise Failure(f"resultType, which belongs to {MODERN} alone: {record['line'][:200]!r}")


def key(identity):
    return (type(identity).__name__, identity)


class Servers:
    """Servers over HTTP, one for each set of arguments; every scenario is a new client of them."""

    def __init__(self, name, command, log):
        self.name, self.command, self.log = name, command, log
        self.running = {}  # arguments -> (process, origin)

    async def origin(self, *arguments):
        if arguments in self.running:
            return self.running[arguments][1]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *SERVERS[self.name]["http"]([*self.command, *arguments], port),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.running[arguments] = (process, f"http://127.0.0.1:{port}")
        for _ in range(500):
            if process.returncode is not None:
                break
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return self.running[arguments][1]
            except OSError:
                await asyncio.sleep(0.01)
        raise Failure(f"the server does not listen (exit code {process.returncode})")

    def check(self):
        for arguments, (process, _) in self.running.items():
            if process.returncode is not None:
                raise Failure(f"the server {' '.join(arguments)} has ended with {process.returncode}")

    async def stop(self):
        for process, _ in self.running.values():
            end_group(process.pid)
            await process.wait()
        self.running.clear()


class Driver:
    """One client process, which serves many scenarios after each other."""

    def __init__(self, command, log):
        self.command = [str(HERE / command[0]) if command[0].startswith(".") else command[0]]
        self.command += [str(HERE / part) for part in command[1:]]
        self.log = log
        self.process = None
        self.number = 0

    async def start(self):
        self.waiting, self.events, self.changed = {}, [], asyncio.Condition()
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self.log,
            limit=1 << 26,
            start_new_session=True,
        )
        self.reader = asyncio.create_task(self._read())
        await self.event("ready", timeout=60)

    async def _read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            async with self.changed:
                if "event" in message:
                    message["at"] = time.monotonic()
                    self.events.append(message)
                elif future := self.waiting.pop(message["id"], None):
                    message["at"] = time.monotonic()
                    if not future.done():
                        future.set_result(message)
                self.changed.notify_all()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Failure("the client process ended"))
                future.exception()  # it may be that nobody waits for this one

    async def event(self, name, accept=lambda event: True, timeout=10):
        """The first event of that name which is accepted, now or later."""

        def find():
            return next((e for e in self.events if e["event"] == name and accept(e)), None)

        async with self.changed:
            try:
                await asyncio.wait_for(self.changed.wait_for(lambda: find() is not None), timeout)
            except asyncio.TimeoutError:
                raise Failure(f"no {name!r} event within {timeout} s") from None
            return find()

    def send(self, op, **args):
        self.number += 1
        future = asyncio.get_running_loop().create_future()
        self.waiting[self.number] = future
        line = json.dumps({"id": self.number, "op": op, "args": args}) + "\n"
        self.process.stdin.write(line.encode())
        return self.number, future

    async def stop(self, kindly=True):
        if self.process is None:
            return
        if kindly and self.process.returncode is None:
            self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), 5)
            except asyncio.TimeoutError:
                pass
        end_group(self.process.pid)
        await self.process.wait()
        self.reader.cancel()
        self.process = None


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
        return True
    except (ProcessLookupError, PermissionError):
        return False


class Context:
    """One scenario being run: what a scenario function is given."""

    def __init__(self, client, driver, server, command, revision, log, transport="stdio", servers=None, url=None):
        self.client, self.driver, self.server, self.revision = client, driver, server, revision
        self.modern = revision == MODERN
        self.command, self.log, self.url = command, log, url
        self.transport, self.servers = transport, servers
        self.wire = None  # only stdio has one
        self.taps = []
        self.connected = False
        driver.events.clear()

    def at_least(self, revision):
        return self.revision >= revision

    # Operations

    async def connect(self, *arguments, **options):
        if self.url:
            if arguments:
                raise Skip(f"needs a server that was started with {' '.join(arguments)}")
            transport = {"kind": self.transport, "url": self.url}
        elif self.servers:
            url = await self.servers.origin(*arguments) + TRANSPORTS[self.transport]
            transport = {"kind": self.transport, "url": url}
        else:
            tap = self.log.with_name(f"{self.log.name}-{len(self.taps)}.jsonl")
            tap.unlink(missing_ok=True)
            self.taps.append(tap)
            self.wire = Wire(tap)
            command = [sys.executable, "-ISE", str(HERE / "tap.py"), str(tap), *self.command, *arguments]
            transport = {"kind": "stdio", "command": command, "cwd": str(ROOT)}
        self.connected = True
        info = await self.do("connect", transport=transport, revision=self.revision, **options)
        self.equal(info["revision"], self.revision, "the negotiated revision")
        return info

    async def close(self):
        if not self.connected:
            return
        self.connected = False
        await self.do("close")
        if self.wire:
            await self.left()

    async def left(self):
        """The server of the last connection has gone by itself, with success."""
        end = time.monotonic() + EXIT_SECONDS + 2
        while not any(r["ev"] == "exit" for r in self.wire.records()):
            if time.monotonic() > end:
                raise Failure("the server did not exit")
            await asyncio.sleep(0.01)
        records = self.wire.records()
        by_kind = {r["ev"]: r for r in records}
        if "eof" not in by_kind:
            raise Failure(f"the server exited with {by_kind['exit']['code']} before its stdin was closed")
        if "term" in by_kind or "killed" in by_kind:
            raise Failure("the server did not exit when its stdin was closed and had to be ended")
        if by_kind["exit"]["code"] != 0:
            raise Failure(f"the server exited with {by_kind['exit']['code']}")
        if (took := by_kind["exit"]["t"] - by_kind["eof"]["t"]) > EXIT_SECONDS:
            raise Failure(f"the server took {took:.1f} s to exit")

    def start(self, op, **args):
        """Starts an operation; (number, future of its message)."""
        return self.driver.send(op, **args)

    async def outcome(self, future):
        """("ok", value) or ("error", {...}) of a started operation."""
        message = await future
        return ("ok", message["ok"]) if "ok" in message else ("error", message["error"])

    async def do(self, op, **args):
        kind, value = await self.outcome(self.start(op, **args)[1])
        if kind == "error":
            raise Failure(f"{op} failed: {value}")
        return value

    async def refused(self, code, op, *, told=None, **args):
        """The server answers that operation with that error code; gives the error.

        `told` is the code that the SDK tells in its place.
        """
        kind, value = await self.outcome(self.start(op, **args)[1])
        if kind == "ok":
            raise Failure(f"{op} {args} was answered with {short(value)}, not with error {code}")
        if value.get("kind") != "rpc" or value.get("code") != (told or code):
            raise Failure(f"{op} {args} failed with {short(value)}, not with error {told or code}")
        if self.wire:
            # The SDKs use the same codes for what they find wrong by themselves.
            last = [m for _, m in self.wire.messages("out") if "method" not in m][-1]
            if last.get("error", {}).get("code") != code:
                raise Failure(f"the client tells of error {code}, but on the wire was {short(last)}")
            return last["error"]
        return value

    async def call(self, name, arguments=None, **options):
        return await self.do("call_tool", name=name, arguments=arguments or {}, **options)

    async def event(self, name, accept=lambda event: True, timeout=10):
        return await self.driver.event(name, accept, timeout)

    def events(self, name):
        return [e for e in self.driver.events if e["event"] == name]

    # Checks

    def expect(self, holds, text):
        if not holds:
            raise Failure(text)

    def equal(self, got, wanted, what):
        if got != wanted or type(got) is not type(wanted):
            raise Failure(f"{what}: {short(got)}, not {short(wanted)}")

    def complaints(self):
        return [
            e
            for e in self.events("complaint")
            if not any(
                client == self.client and re.search(what, e["text"]) and scenario in (None, self.log.name)
                for client, what, scenario in FLAWS
            )
        ]

    # The end

    async def finish(self):
        """What is checked after every scenario."""
        await self.close()
        if self.wire:
            self.wire.check(self.revision)
        if self.servers:
            self.servers.check()
        if complaints := self.complaints():
            raise Failure(f"the client complains: {complaints[0]['source']}: {complaints[0]['text']}")

    def clean_up(self):
        """Ends what is still there; True if anything was."""
        left = False
        for tap in self.taps:
            alive = {}
            for record in Wire(tap).records(every_process=True):
                if record["ev"] == "start":
                    alive[record["tap"]] = record["pid"]
                elif record["ev"] == "exit":
                    alive.pop(record["tap"], None)
            for pid in alive.values():
                left |= end_group(pid)
        return left


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "…"
