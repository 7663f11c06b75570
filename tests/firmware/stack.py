#!/usr/bin/env python3
"""How deep the stack of `ethernet` gets: the board is asked all there is to ask, and then how much of the paint is gone.

    stack.py IMAGE     prints the bytes of stack; exits with 1 if a question was not answered as it should be
"""

import json
import re
import sys

from device import LEGACY, Board, Reader

STATUS = "board://status"

# Method, params, and what the answer has in it.
QUESTIONS = [
    ("tools/list", {}, "read_temperature"),
    ("resources/list", {}, STATUS),
    ("resources/templates/list", {}, "resourceTemplates"),
    ("prompts/list", {}, "check_temperature"),
    ("tools/call", {"name": "read_temperature"}, "degrees"),
    ("tools/call", {"name": "set_led", "arguments": {"on": True}}, "on"),
    ("tools/call", {"name": "set_led", "arguments": {"on": "perhaps \u00e9\n"}}, "isError"),
    ("tools/call", {"name": "set_led", "arguments": {"on": False}}, "off"),
    ("tools/call", {"name": "uptime"}, " s"),
    ("tools/call", {"name": "history"}, "minute 2499"),
    ("tools/call", {"name": "show_board"}, "the LED is"),
    ("tools/call", {"name": "no_such_tool"}, "error"),
    ("resources/read", {"uri": STATUS}, "stack"),
    ("resources/read", {"uri": "board://temperature"}, "degrees"),
    ("resources/read", {"uri": "board://history"}, "minute 2499"),
    ("resources/read", {"uri": "ui://board/panel"}, "</html>"),
    ("resources/read", {"uri": "skill://thermometer/references/faults.md"}, "idle"),
    ("resources/read", {"uri": "board://nothing"}, "error"),
    ("prompts/get", {"name": "check_temperature", "arguments": {"limit": "4\"0\u00e9"}}, "Is that more than 4"),
    ("prompts/get", {"name": "check_temperature"}, "error"),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "check_temperature"}, "argument": {"name": "limit", "value": "4"}}, "40"),
    ("no/such/method", {}, "error"),
]
# From 2026-07-28 on.
SKILLS = [
    ("skills/list", {}, "sha256:"),
    ("skills/get", {"uri": "skill://thermometer/SKILL.md"}, "sha256:"),
    ("resources/directory/read", {"uri": "skill://thermometer"}, "inode/directory"),
]
MEASURE = {"name": "measure", "arguments": {"samples": 5, "interval_ms": 20}}


def expect(what, good, detail):
    if not good:
        sys.exit(f"stack: {what}: {str(detail)[:500]}")


def exchange(board, request, what, wanted):
    """Sends a request, whose answer has `wanted` in it, on a connection of its own; its headers."""
    with board.connect() as stream:
        stream.sendall(request)
        status, headers, messages = Reader(stream, 20).response()
    said = json.dumps(messages)
    expect(what, wanted in said, (status, said))
    return headers


def modern(board):
    for at, (method, params, wanted) in enumerate(QUESTIONS + SKILLS):
        exchange(board, board.modern(at, method, params), method, wanted)
    exchange(board, board.modern("d", "server/discover"), "server/discover", "supportedVersions")
    exchange(board, board.modern("m", "tools/call", MEASURE, token="m"), "measure", "notifications/progress")


def legacy(board):
    """The same in a session."""
    session = {}

    def post(message, wanted, what):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        headers = [f"{name}: {value}" for name, value in session.items()]
        return exchange(board, board.head("POST", len(body), headers) + body, what, wanted)

    hello = {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "stack", "version": "1"}}
    headers = post({"id": "o", "method": "initialize", "params": hello}, LEGACY, "initialize")
    session.update({"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY})
    post({"method": "notifications/initialized"}, "", "initialized")
    for at, (method, params, wanted) in enumerate(QUESTIONS):
        post({"id": at, "method": method, "params": params}, wanted, method)
    params = {**MEASURE, "_meta": {"progressToken": "m"}}
    post({"id": "m", "method": "tools/call", "params": params}, "notifications/progress", "measure")
    post({"id": "s", "method": "resources/subscribe", "params": {"uri": STATUS}}, "result", "subscribe")
    headers = [f"{name}: {value}" for name, value in session.items()]
    hear(board, board.head("GET", 0, headers))
    exchange(board, board.head("DELETE", 0, headers), "the end of the session", "")


def hear(board, request):
    """Listens while the LED changes."""
    with board.connect() as stream:
        stream.sendall(request)
        reader = Reader(stream, 20)
        status, headers = reader.response_head()
        expect("a stream", status == 200 and "event-stream" in headers.get("content-type", ""), (status, headers))
        board.call("on", "set_led", {"on": True})
        board.call("off", "set_led", {"on": False})
        heard = b""
        while b"notifications/resources/updated" not in heard:
            heard += reader.chunk()


def refused(board):
    for body in (b"[" * 900, b'{"jsonrpc', b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'):
        exchange(board, board.head("POST", len(body)) + body, f"{body[:20]}", "error")
    exchange(board, board.head("POST", 100_000), "a body that is too large", "")


def crowd(board):
    """More connections than sockets, each with a request on the way."""
    streams = [board.connect(20) for _ in range(10)]
    for at, stream in enumerate(streams):
        stream.sendall(board.modern(at, "resources/read", {"uri": "board://history"}))
    for stream in streams:
        stream.close()


def main():
    with Board(sys.argv[1]) as board:
        modern(board)
        legacy(board)
        hear(board, board.modern("l", "subscriptions/listen", {"notifications": {"resourceSubscriptions": [STATUS]}}))
        refused(board)
        crowd(board)
        text = board.ask("end", "resources/read", {"uri": STATUS}, seconds=20)["contents"][0]["text"]
        expect("the board has started once", board.starts() == 1, board.log())
        print(re.search(r"stack: (\d+) of", text)[1])


main()
