#!/usr/bin/env python3
"""What the scenario `session-isolation` of a branch of the official suite is for: sessions.py SERVER PORT.

Two sessions of 2025-11-25 have ids of their own; what the server says about a call of one does not reach the stream of the other; each
ends by itself, and an id that was ended or made up gets 404.
"""

import json
import socket
import sys
import urllib.error
import urllib.request

from serving import serving

REVISION = "2025-11-25"


def headers(session):
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"Mcp-Session-Id": session, "MCP-Protocol-Version": REVISION} if session else {}),
    }


def http(url, verb, session=None, message=None):
    """Returns the status, the session id and the body."""
    body = json.dumps({"jsonrpc": "2.0"} | message).encode() if message else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers(session), method=verb), timeout=10) as response:
            return response.status, response.headers.get("Mcp-Session-Id"), response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, None, error.read().decode()


def begin(url):
    params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "sessions", "version": "1"}}
    status, session, _ = http(url, "POST", None, {"id": 1, "method": "initialize", "params": params})
    assert status == 200 and session, status
    assert http(url, "POST", session, {"method": "notifications/initialized"})[0] == 202
    return session


def call(url, session, tool):
    params = {"name": tool, "arguments": {}, "_meta": {"progressToken": f"of {session}"}}
    return http(url, "POST", session, {"id": 2, "method": "tools/call", "params": params})


def stream(port, session):
    """Opens the stream of a session for the server's own messages."""
    connection = socket.create_connection(("127.0.0.1", int(port)), timeout=10)
    lines = [f"{name}: {value}" for name, value in headers(session).items()]
    connection.sendall("\r\n".join(["GET /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", *lines, "", ""]).encode())
    assert b" 200 " in connection.recv(4096).split(b"\r\n")[0]
    return connection


def heard(connection):
    connection.settimeout(1)
    heard = b""
    try:
        while part := connection.recv(65536):
            heard += part
    except TimeoutError:
        pass
    return heard.decode()


def main(server, port):
    with serving(port, server, "--port", port) as url:
        first, second = begin(url), begin(url)
        assert first != second
        streams = [stream(port, session) for session in (first, second)]
        for tool in ["test_tool_with_progress", "test_tool_with_logging"]:
            status, _, body = call(url, first, tool)
            assert status == 200 and '"result"' in body, (tool, status, body)
            assert "notifications/" in body, (tool, body)
        assert all("notifications/" not in heard(each) for each in streams)
        print("pass  sessions  messages of one do not reach the other")
        assert http(url, "DELETE", first)[0] in (200, 204)
        ping = {"id": 3, "method": "ping"}
        assert http(url, "POST", first, ping)[0] == 404
        assert http(url, "POST", "made-up", ping)[0] == 404
        assert http(url, "POST", second, ping)[0] == 200
        print("pass  sessions  each ends by itself")


main(*sys.argv[1:])
