#!/usr/bin/env python3
"""A board and Home Assistant, both ways, by the SDK and the steps of its integrations `mcp` and `mcp_server`: the board is the server of
its client behind the bridge, and `inspect` is a client of its server.

usage: tests/bridge/home_assistant.py IMAGE, with the Python of tests/interop/.venv-mcp-1.30"""

import json
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import httpx
from mcp import types
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared.message import SessionMessage

from board import Board
from programs import BRIDGE, PROGRAMS, free_port

TOKEN = "a-long-lived-access-token"


async def once(url, act):
    """What `mcp` does for each list and each call: a connection and a session of their own."""
    async with httpx.AsyncClient(timeout=30) as http, streamable_http_client(url=url, http_client=http) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            return await act(session)


async def as_client(url):
    tools = (await once(url, lambda session: session.list_tools())).tools
    assert {"read_temperature", "set_led"} <= {tool.name for tool in tools}, tools
    for on, text in [(True, "The LED is on"), (False, "The LED is off")]:
        result = await once(url, lambda session: session.call_tool("set_led", {"on": on}))
        assert result.content[0].text == text and not result.isError, result


def home():
    """A server with a light, as the SDK serves it."""
    server = Server("home-assistant")

    @server.list_tools()
    async def list_tools():
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return [types.Tool(name="HassTurnOn", description="Turns on a device", inputSchema=schema)]

    @server.call_tool()
    async def call_tool(name, arguments):
        return [types.TextContent(type="text", text=f"{arguments['name']} is on")]

    return server


class Endpoint(BaseHTTPRequestHandler):
    """`/api/mcp` of `mcp_server`: a token, no session, no stream; each request has a server of its own."""

    def log_message(self, *_):
        pass

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    do_DELETE = do_GET

    def do_POST(self):
        message = types.JSONRPCMessage.model_validate_json(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401)
        if not isinstance(message.root, types.JSONRPCRequest):
            return self.reply(202)
        known = {kind.model_fields["method"].default for kind in types.ClientRequest.model_fields["root"].annotation.__args__}
        if message.root.method not in known:
            error = {"code": -32601, "message": "Method not found", "data": message.root.method}
            return self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message.root.id, "error": error}).encode())
        return self.reply(200, anyio.run(answer, message).encode())


async def answer(message):
    server = home()
    send, read = anyio.create_memory_object_stream(0)
    write, receive = anyio.create_memory_object_stream(0)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: server.run(read, write, server.create_initialization_options(), stateless=True))
        await send.send(SessionMessage(message))
        answered = await receive.receive()
        group.cancel_scope.cancel()
    return answered.message.model_dump_json(by_alias=True, exclude_none=True)


def inspect(url, *command):
    program = [PROGRAMS / "examples/inspect", "--header", f"Authorization: Bearer {TOKEN}", url, *command]
    run = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run
    return run.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        board, port = Board(sys.argv[1], folder), free_port()
        bridge = subprocess.Popen([BRIDGE, "--wait", "30", "--listen", str(port), f"serial:{board.port}"], stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}/mcp"
            for _ in range(1000):
                try:
                    httpx.get(url)
                    break
                except httpx.ConnectError:
                    assert bridge.poll() is None, "the bridge has ended"
                    threading.Event().wait(0.05)
            anyio.run(as_client, url)
        finally:
            for process in (bridge, board.process):
                process.kill()
                process.wait()
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/api/mcp"
        assert "HassTurnOn" in inspect(url, "tools")
        called = inspect(url, "call", "HassTurnOn", "name=kitchen")
        assert called.strip() == "kitchen is on", called
        server.shutdown()
    print("home_assistant.py: its client with the board, its server with ours")


main()
