#!/usr/bin/env python3
"""Three processes of the conformance server and a Redis: each listener at each process hears each change once, also after
Redis and a process were killed and started anew. Without Redis a process serves its own clients.

usage: tests/scale/changes.py CONFORMANCE-SERVER
"""

import http.client
import json
import socket
import sys
import time

from processes import START_LIMIT, Processes

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "changes", "version": "1"},
}
LISTENERS = 4  # at each process


def post(port, method, params, name=None):
    """Sends a request of 2026-07-28 and returns the connection and the response."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": META}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if name:
        headers["Mcp-Name"] = name
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/mcp", json.dumps(body), headers)
    return connection, connection.getresponse()


class Listener:
    """An open `subscriptions/listen` for changes of the tools."""

    def __init__(self, port):
        self.connection, self.response = post(port, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert self.response.status == 200, self.response.status
        self.next("acknowledged")

    def next(self, what):
        """Waits for the next message, which must be `what`."""
        while line := self.response.readline():
            if line.startswith(b"data: {"):
                method = json.loads(line[6:])["method"]
                assert what in method, f"{method} in place of {what}"
                return
        raise AssertionError("the stream has ended")

    def silent(self):
        """Returns whether nothing more comes in a short time."""
        self.connection.sock and self.connection.sock.settimeout(0.2)
        raw = self.response.fp.raw._sock
        raw.settimeout(0.3)
        try:
            while line := self.response.readline():
                if line.startswith(b"data: {"):
                    return False
        except (TimeoutError, socket.timeout):
            # What was read of a line is lost, so this listener is not read again.
            return True
        return False


def change(fleet, number):
    """Changes the tools at one process."""
    name = "test_trigger_tool_change"
    _, response = post(fleet.ports[number], "tools/call", {"name": name, "arguments": {}}, name)
    assert b"result" in response.read()


def listen(fleet):
    """Opens listeners at all processes."""
    return [Listener(port) for port in fleet.ports for _ in range(LISTENERS)]


def wait_alone(fleet, number):
    """Waits until a process has said that it is alone."""
    deadline = time.monotonic() + START_LIMIT
    while fleet.is_joined(number):
        assert time.monotonic() < deadline, f"process {number} has not said that it is alone"
        time.sleep(0.02)


def main():
    with Processes(sys.argv[1], proxy=False) as fleet:
        # Each change is heard once by each listener, whichever process it was made at.
        listeners = listen(fleet)
        for number in range(3):
            change(fleet, number)
            for listener in listeners:
                listener.next("tools/list_changed")
        assert all(listener.silent() for listener in listeners), "a change was heard twice"
        print("changes: each of", len(listeners), "listeners heard each change once")

        # A process dies and comes back: its listeners come back, and hear as before.
        fleet.kill(1)
        fleet.start(1)
        fleet.wait_joined(1)
        listeners = listen(fleet)
        change(fleet, 1)
        change(fleet, 0)
        # Two changes before a listener is written may be one notification.
        for listener in listeners:
            listener.next("tools/list_changed")
        print("changes: heard after a process was killed")

        # Redis dies: each process goes on alone.
        listeners = listen(fleet)
        fleet.kill_redis()
        for number in range(3):
            wait_alone(fleet, number)
        change(fleet, 2)
        own, others = listeners[2 * LISTENERS:], listeners[:2 * LISTENERS]
        for listener in own:
            listener.next("tools/list_changed")
        print("changes: without Redis the clients of a process hear its own")

        # It comes back and has forgotten all: everybody may have missed something.
        fleet.start_redis()
        for listener in others:
            listener.next("tools/list_changed")
        for number in range(3):
            fleet.wait_joined(number)
        listeners = listen(fleet)
        time.sleep(0.5)
        change(fleet, 0)
        for listener in listeners:
            listener.next("tools/list_changed")
        print("changes: heard after Redis was started anew")


if __name__ == "__main__":
    main()
