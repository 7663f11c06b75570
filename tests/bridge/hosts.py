#!/usr/bin/env python3
"""Several hosts over HTTP in front of one child: the Python and the TypeScript SDK at once, in both eras."""

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request

from mcp import Client, types
from mcp.client.sse import sse_client

from programs import HERE, OLD, META, Front

MODERN = "2026-07-28"


async def sample(context, params):
    said = types.TextContent(type="text", text="from python")
    return types.CreateMessageResult(role="assistant", content=said, model="m")


def text(result):
    return result.content[0].text


async def python(front, mode, url=None):
    """The Python SDK and, during one of its calls, the TypeScript SDK."""
    notes, steps = [], []

    async def told(done, total, message):
        steps.append(done)
        under_way.set()

    async def note(message):
        notes.append(type(message).__name__)

    under_way = asyncio.Event()
    options = {"sampling_callback": sample, "message_handler": note, "read_timeout_seconds": 20}
    async with Client(url or front.url, mode=mode, **options) as host:
        assert len((await host.list_tools()).tools) == 10
        slow = asyncio.create_task(host.call_tool("slow", {"steps": 40}, progress_callback=told))
        await under_way.wait()
        for revision in ["2025-11-25", MODERN]:
            other = await asyncio.create_subprocess_exec(
                "node", str(HERE / "host.mjs"), front.url, revision, stdout=subprocess.PIPE
            )
            said = json.loads((await asyncio.wait_for(other.communicate(), 30))[0])
            assert said["asked"] == "from typescript" and said["tools"] == 10 and said["slow"] == "slow", said
            assert said["steps"] == sorted(said["steps"]) and len(said["steps"]) > 5, said
        assert text(await slow) == "slow" and steps == sorted(steps) and len(steps) == 39, steps
        assert text(await host.call_tool("ask", {})) == "from python"
        if mode == "legacy":
            await host.session.subscribe_resource("x://y")
            await host.call_tool("change", {})
            for _ in range(100):
                if {"ResourceUpdatedNotification", "ToolListChangedNotification"} <= set(notes):
                    break
                await asyncio.sleep(0.05)
            assert {"ResourceUpdatedNotification", "ToolListChangedNotification"} <= set(notes), notes
        # The server dies in a call of one host; the next call of any starts it again.
        (before,) = front.children()
        with contextlib.suppress(Exception):
            await host.call_tool("exit", {})
        assert text(await host.call_tool("ask", {})) == "from python"
        assert before not in front.children() and len(front.children()) == 1


async def two_hosts():
    folder = tempfile.TemporaryDirectory()
    journal = os.path.join(folder.name, "journal")
    front = Front("--wait", "10", "--journal", journal, "--", *OLD)
    try:
        for mode in ["legacy", MODERN]:
            await python(front, mode)
            print(f"hosts.py: Python SDK ({mode}) and TypeScript SDK (both eras) in front of one child")
        await python(front, "legacy", sse_client(front.url.replace("/mcp", "/sse")))
        print("hosts.py: Python SDK over HTTP with SSE, and TypeScript SDK")
        with open(journal) as lines:
            hosts = {line.get("host") for line in map(json.loads, lines) if line["method"] == "tools/call"}
        assert len(hosts) == 2 and all(hosts), hosts
        assert front.rests()
    finally:
        front.stop()


def post(url, host=None, token=None, body=None):
    """Returns the status of a request."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}
    headers |= {"Host": host} if host else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    message = body or {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code


def checks():
    """Foreign sites, and hosts without the token, are refused."""
    with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
        file.write("s3cret\n")
        file.flush()
        front = Front("--token-file", file.name, "--host-name", "desk.local", "--", *OLD)
        try:
            told = [post(front.url), post(front.url, token="s3creT"), post(front.url, token="s3cret")]
            assert told == [401, 401, 200], told
            told = [post(front.url, host=name, token="s3cret") for name in ["evil.example", "desk.local"]]
            assert told == [403, 200], told
            assert front.url.startswith("http://127.0.0.1:"), front.url
        finally:
            front.stop()
        # Nobody is asked who comes from another machine. The first line says so.
        for options, listen, lines in [([], "0.0.0.0:0", 2), ([], "127.0.0.1:0", 1), (["--token-file", file.name], "0.0.0.0:0", 1)]:
            front = Front("--wait", "0", *options, "--", "/nonexistent/server", listen=listen)
            front.stop()
            told = [line for line in front.lines if "is not there" not in line]
            assert len(told) == lines and (lines == 1 or "anybody who reaches 0.0.0.0:" in told[0]), told
    print("hosts.py: token and Host are checked")


if __name__ == "__main__":
    os.environ.pop("OLD_LOG", None)
    checks()
    asyncio.run(two_hosts())
