#!/usr/bin/env python3
"""Clients of the C example `http_server`, several at a time and of each revision: over_http.py PROGRAM"""

import json
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection

from session import LEGACY, META, MODERN

CONNECTIONS = 16


def post(connection, message, session=None, revision=None, piecewise=False, **headers):
    """Posts a message; the status, the headers, and the messages of the answer."""
    body = json.dumps(message).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    if session:
        headers["Mcp-Session-Id"] = session
    if revision:
        headers["MCP-Protocol-Version"] = revision
    if revision == MODERN:
        headers["Mcp-Method"] = message["method"]
        if "name" in message["params"]:
            headers["Mcp-Name"] = message["params"]["name"]
    if piecewise:
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send = connection.send
        connection.send = lambda data: [send(data[at : at + 1]) for at in range(len(data))]
    connection.request("POST", "/mcp", body, headers)
    connection.__dict__.pop("send", None)
    response = connection.getresponse()
    text = response.read().decode()
    if response.getheader("Content-Type", "").startswith("text/event-stream"):
        messages = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    else:
        messages = [json.loads(text)] if text else []
    return response.status, response, messages


def request(number, method, params, revision):
    params = {**params, "_meta": META} if revision == MODERN else params
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def check(condition, what):
    if not condition:
        sys.exit(f"over_http.py: {what}")


def session(connect, revision, piecewise):
    connection, name = connect(), None
    if revision != MODERN:
        client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        status, response, [answer] = post(connection, request(0, "initialize", client, revision), piecewise=piecewise)
        name = response.getheader("Mcp-Session-Id")
        check(status == 200 and answer["result"]["protocolVersion"] == revision and name, answer)
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        check(post(connection, message, name, revision)[0] == 202, "initialized")

    def ask(number, method, params):
        return post(connection, request(number, method, params, revision), name, revision, piecewise)

    status, _, [answer] = ask(1, "tools/list", {})
    check([tool["name"] for tool in answer["result"]["tools"]] == ["set_level", "fade"], answer)
    status, _, [answer] = ask(2, "tools/call", {"name": "set_level", "arguments": {"level": 40}})
    check(status == 200 and answer["result"]["content"][0]["text"] == "done", answer)
    status, _, [answer] = ask(3, "tools/call", {"name": "set_level", "arguments": {"level": 101}})
    check(answer["result"]["isError"], answer)
    # Put off, so answered as an event.
    status, response, [*_, answer] = ask(4, "tools/call", {"name": "fade", "arguments": {}})
    check(answer["id"] == 4 and answer["result"]["content"][0]["text"] == "faded", answer)
    status, _, [answer] = ask(5, "nonsense", {})
    check(answer["error"]["code"] == -32601, answer)
    if name:
        connection.request("DELETE", "/mcp", headers={"Mcp-Session-Id": name})
        check(connection.getresponse().read() == b"", "DELETE")
        check(ask(6, "tools/list", {})[0] == 404, "a session that was ended")
    connection.close()


def main():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.argv[1], str(port)], stderr=subprocess.PIPE)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                check(server.poll() is None, "the server has ended")
                time.sleep(0.02)

        def connect():
            return HTTPConnection("127.0.0.1", port, timeout=60)

        # More clients than connections, which do nothing: others are served when one of them is gone.
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS - 1)]
        for revision in [*LEGACY[1:], MODERN]:
            session(connect, revision, False)
            session(connect, revision, True)
        more = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        idle.pop().close()
        for one in [*idle, *more]:
            one.close()

        ping = request(1, "tools/list", {}, MODERN)
        check(post(connect(), ping, revision=MODERN, Host="evil.example")[0] == 403, "another host")
        check(post(connect(), ping, revision=MODERN, Origin="http://evil.example")[0] == 403, "another origin")
        large = request(1, "tools/call", {"name": "set_level", "arguments": {"x": "x" * 5000}}, MODERN)
        check(post(connect(), large, revision=MODERN)[0] == 413, "a body that is too large")
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(b"\x00\xff nonsense\r\n\r\n")
            raw.settimeout(60)
            check(raw.recv(100).startswith(b"HTTP/1.1 400"), "no HTTP")

        # A client of 2026-07-28 hears of the level that another one sets.
        listener = connect()
        listen = request(7, "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["lamp://level"]}}, MODERN)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN}
        listener.request("POST", "/mcp", json.dumps(listen), {**headers, "Mcp-Method": "subscriptions/listen"})
        events = listener.getresponse()
        check(events.status == 200, "listen")
        post(connect(), request(1, "tools/call", {"name": "set_level", "arguments": {"level": 1}}, MODERN), revision=MODERN)
        while b"notifications/resources/updated" not in (line := events.readline()):
            check(line, "the stream ended without the change")
        # The server ends its stream when it ends.
        server.send_signal(signal.SIGTERM)
        events.read()
        _, errors = server.communicate(timeout=60)
        check(server.returncode == 0 and not errors, f"{server.returncode} {errors.decode()}")
        print("over_http.py: all passed")
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()


if __name__ == "__main__":
    main()
