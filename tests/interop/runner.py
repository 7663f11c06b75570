#!/usr/bin/env python3
"""Drives our servers with the clients of other SDKs. See README.md."""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import scenarios
from harness import (
    CLIENTS,
    FIRMWARE_BUILD_SECONDS,
    FIRMWARE_START_SECONDS,
    HERE,
    LEGACY,
    MODERN,
    ROOT,
    SCENARIO_SECONDS,
    SERVERS,
    TRANSPORT_REVISIONS,
    TRANSPORTS,
    Context,
    Driver,
    Failure,
    Servers,
    Skip,
    end_group,
    server_command,
)


# So many failures are tried once more, each alone: the SDKs have time limits of their own, and a busy machine exceeds them.
SECOND_TRIES = 3


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def line(self, verdict, context, name, seconds, reason=None):
        if verdict == "failed":
            self.failures.append((context, name))
        setattr(self, verdict, getattr(self, verdict) + 1)
        word = {"passed": "pass", "failed": "FAIL", "skipped": "skip"}[verdict]
        where = f"{context['client']:<15} {context['server']:<9} {context['transport']:<5} {context['revision']}"
        print(f"{word}  {where}  {name:<24} {seconds:6.2f} s" + (f"  {reason}" if reason else ""), flush=True)


async def run_combination(client, server, transport, command, revision, options, report, only=None):
    folder = Path(options.logs) / client / server / transport / revision
    if not only:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    where = {"client": client, "server": server, "transport": transport, "revision": revision}
    seconds = SCENARIO_SECONDS + (FIRMWARE_START_SECONDS if server in ("firmware", "board") else 0)
    with open(folder / "client.stderr", "ab") as log, open(folder / "server.stderr", "ab") as server_log:
        own = transport != "stdio" and not options.url
        servers = Servers(server, command, server_log) if own else None
        driver = Driver(CLIENTS[client]["command"], log)
        try:
            for name, function in scenarios.applicable(server, revision):
                if options.scenario and not any(part in name for part in options.scenario) or only not in (None, name):
                    continue
                if reason := scenarios.skip_reason(client, server, transport, revision, name):
                    report.line("skipped", where, name, 0, reason)
                    continue
                began = time.monotonic()
                context, failure, skipped = None, None, None
                try:
                    if driver.process is None:
                        await driver.start()
                    context = Context(
                        client, driver, server, command, revision, folder / name, transport, servers, options.url
                    )

                    async def whole():
                        await function(context)
                        await context.finish()

                    await asyncio.wait_for(whole(), seconds)
                except Failure as error:
                    failure = str(error)
                except Skip as reason:
                    skipped = str(reason)
                    await context.close()
                except asyncio.TimeoutError:
                    failure = f"not done within {seconds} s"
                except Exception as error:
                    failure = f"{type(error).__name__}: {error}"
                if failure:
                    # A client that was stopped half way is not used again.
                    complaints = context.complaints() if context else []
                    if complaints and "complains" not in failure:
                        failure += f" (the client complains: {complaints[0]['source']}: {complaints[0]['text']})"
                    await driver.stop(kindly=False)
                if context and context.clean_up() and not failure:
                    failure = "a server process was left behind"
                took = time.monotonic() - began
                if skipped and not failure:
                    report.line("skipped", where, name, took, skipped)
                elif failure:
                    report.line("failed", where, name, took, f"{failure}\n      log: {folder / name if transport == 'stdio' else folder}*")
                else:
                    report.line("passed", where, name, took)
        finally:
            await driver.stop()
            if servers:
                await servers.stop()


async def try_again(where, name, commands, options, report):
    """Runs a scenario that failed beside others once more, alone. Only this result counts."""
    client, server, transport, revision = (where[key] for key in ("client", "server", "transport", "revision"))
    if client not in CLIENTS:
        return
    print(f"again, alone: {client} {server} {transport} {revision} {name}", flush=True)
    report.failed -= 1
    await run_combination(client, server, transport, commands[server], revision, options, report, name)


async def built(name, command):
    """Builds the firmware or the board once, so that cargo does not look again at every connection; None, or what went wrong."""
    if not os.environ.get(SERVERS[name]["variable"]) and not os.environ.get("FIRMWARE_ELF"):
        build = await asyncio.create_subprocess_exec(
            command[0], "build", *command[1:], cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            image, _ = await asyncio.wait_for(build.communicate(), FIRMWARE_BUILD_SECONDS)
        except asyncio.TimeoutError:
            end_group(build.pid)
            return f"not built within {FIRMWARE_BUILD_SECONDS} s"
        if build.returncode != 0:
            return f"the build failed with {build.returncode}"
        os.environ["FIRMWARE_ELF"] = image.decode().strip()
    return None


async def warm_up(command):
    """Lets the firmware build and start before the clock runs; None, or what went wrong."""
    if trouble := await built("firmware", command):
        return trouble
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=1 << 20,
    )
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": LEGACY[-1],
            "capabilities": {},
            "clientInfo": {"name": "warm-up", "version": "0"},
        },
    }
    try:
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        line = await asyncio.wait_for(process.stdout.readline(), FIRMWARE_START_SECONDS)
        if "result" not in json.loads(line):
            return f"answered {line[:200]!r}"
        return None
    except (asyncio.TimeoutError, ValueError, ConnectionError) as error:
        return f"no answer to initialize: {error!r}"
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except asyncio.TimeoutError:
            pass
        end_group(process.pid)
        await process.wait()


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=[*SERVERS, "all"], default="all")
    parser.add_argument("--client", choices=[*CLIENTS, "all"], default="all")
    parser.add_argument("--transport", choices=[*TRANSPORTS, "all"], default="all")
    parser.add_argument("--revision", choices=[*LEGACY, MODERN, "all"], default="all")
    parser.add_argument("--scenario", action="append", metavar="TEXT", help="only those whose name holds TEXT")
    parser.add_argument("--url", help="a server that is already there, over --transport http or sse, in place of a command")
    parser.add_argument("--jobs", type=int, default=4, help="clients at work side by side (default 4)")
    parser.add_argument("--logs", default=str(HERE / ".logs"), help="where the wire logs go")
    options = parser.parse_args()
    options.logs = str(Path(options.logs).resolve())
    if options.url and options.server == "all":
        parser.error("--url needs one --server")
    if options.url and options.transport not in ("http", "sse"):
        parser.error("--url needs --transport http or sse")

    every = [name for name, server in SERVERS.items() if server.get("all", True)]
    servers = every if options.server == "all" else [options.server]
    transports = list(TRANSPORTS) if options.transport == "all" else [options.transport]
    if "stdio" not in transports and "firmware" in servers and not options.url:
        servers.remove("firmware")  # it has a serial line
    clients = list(CLIENTS) if options.client == "all" else [options.client]
    if transports == ["stdio"]:
        servers = [name for name in servers if SERVERS[name].get("stdio", True)]
    commands = {name: None if options.url else server_command(name) for name in servers}
    report = Report()
    if "firmware" in servers and not options.url:
        if trouble := await warm_up(commands["firmware"]):
            where = {"client": "-", "server": "firmware", "transport": "stdio", "revision": LEGACY[-1]}
            report.line("failed", where, "start", 0, trouble)
            servers.remove("firmware")
    if "board" in servers and not options.url:
        if trouble := await built("board", commands["board"]):
            sys.exit(f"interop: board: {trouble}")

    # Servers are ended also when the runner is.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    gate = asyncio.Semaphore(max(1, options.jobs))

    async def guarded(*combination):
        async with gate:
            await run_combination(*combination, options, report)

    await asyncio.gather(
        *(
            guarded(client, server, transport, commands[server], revision)
            for server in servers
            for transport in transports
            if options.url or (SERVERS[server].get("stdio", True) if transport == "stdio" else "http" in SERVERS[server])
            for client in clients
            for revision in CLIENTS[client]["revisions"]
            if revision in TRANSPORT_REVISIONS[transport] and options.revision in (revision, "all")
        )
    )
    if report.failed <= SECOND_TRIES:
        for where, name in list(report.failures):
            await try_again(where, name, commands, options, report)
    if report.skipped:
        print(f"{report.skipped} skipped, each with its reason")
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
