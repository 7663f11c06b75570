#!/usr/bin/env python3
"""Three processes of the conformance server and a Redis: each listener at each process hears each change once, also after
Redis and a process were killed and started anew. Without Redis a process serves its own clients.

usage: tests/scale/changes.py CONFORMANCE-SERVER
"""

import http.client
import json
import socket
import subprocess
import sys
import time

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "changes", "version": "1"},
}
LISTENERS = 4  # at each process


def free_port():
    """Returns a port of this machine that was free."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


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


class Fleet:
    """The processes and their Redis."""

    def __init__(self, program):
        self.program, self.redis_port, self.redis = program, free_port(), None
        self.ports, self.servers = [free_port() for _ in range(3)], [None] * 3

    def start_redis(self):
        """Starts a Redis that remembers nothing."""
        self.redis = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", "--port", str(self.redis_port), "--save", "",
                                       "--appendonly", "no"], stdout=subprocess.DEVNULL)

    def start(self, number):
        """Starts a process, and waits until it is in the fleet."""
        server = subprocess.Popen([self.program, "--port", str(self.ports[number]), "--fleet",
                                   f"redis://127.0.0.1:{self.redis_port}/"], stderr=subprocess.PIPE, text=True)
        self.servers[number] = server
        self.wait(number, "Joined")

    def wait(self, number, what):
        """Waits until a process says something about the fleet."""
        for line in self.servers[number].stderr:
            if what in line:
                return
        raise AssertionError(f"process {number} has not said {what}")

    def listen(self):
        """Opens listeners at all processes."""
        return [Listener(port) for port in self.ports for _ in range(LISTENERS)]

    def change(self, number):
        """Changes the tools at one process."""
        name = "test_trigger_tool_change"
        _, response = post(self.ports[number], "tools/call", {"name": name, "arguments": {}}, name)
        assert b"result" in response.read()

    def end(self):
        """Ends all."""
        for process in [*self.servers, self.redis]:
            if process:
                process.kill()
                process.wait()


def main():
    fleet = Fleet(sys.argv[1])
    try:
        fleet.start_redis()
        for number in range(3):
            fleet.start(number)

        # Each change is heard once by each listener, whichever process it was made at.
        listeners = fleet.listen()
        for number in range(3):
            fleet.change(number)
            for listener in listeners:
                listener.next("tools/list_changed")
        assert all(listener.silent() for listener in listeners), "a change was heard twice"
        print("changes: each of", len(listeners), "listeners heard each change once")

        # A process dies and comes back: its listeners come back, and hear as before.
        fleet.servers[1].kill()
        fleet.servers[1].wait()
        fleet.start(1)
        listeners = fleet.listen()
        fleet.change(1)
        fleet.change(0)
        # Two changes before a listener is written may be one notification.
        for listener in listeners:
            listener.next("tools/list_changed")
        print("changes: heard after a process was killed")

        # Redis dies: each process goes on alone.
        listeners = fleet.listen()
        fleet.redis.kill()
        fleet.redis.wait()
        for number in range(3):
            fleet.wait(number, "Alone")
        fleet.change(2)
        own, others = listeners[2 * LISTENERS:], listeners[:2 * LISTENERS]
        for listener in own:
            listener.next("tools/list_changed")
        print("changes: without Redis the clients of a process hear its own")

        # It comes back and has forgotten all: everybody may have missed something.
        fleet.start_redis()
        for listener in others:
            listener.next("tools/list_changed")
        for number in range(3):
            fleet.wait(number, "Joined")
        listeners = fleet.listen()
        time.sleep(0.5)
        fleet.change(0)
        for listener in listeners:
            listener.next("tools/list_changed")
        print("changes: heard after Redis was started anew")
    finally:
        fleet.end()


if __name__ == "__main__":
    main()
